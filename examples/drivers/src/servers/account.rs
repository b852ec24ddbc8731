//! Runs programs that refuse to run as root.

use std::io;
use std::path::Path;
use std::process::Command;

/// Another account, if this program runs as root.
#[cfg(unix)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Account(Option<(u32, u32)>);

#[cfg(unix)]
impl Account {
    /// Gives `folder`, which this program has created, to the account.
    pub(super) fn for_folder(folder: &Path) -> io::Result<Self> {
        use std::os::unix::fs::{MetadataExt, chown};

        if folder.metadata()?.uid() != 0 {
            return Ok(Self(None));
        }
        let users = std::fs::read_to_string("/etc/passwd")?;
        let ids = ["postgres", "nobody"].iter().find_map(|name| {
            let mut fields = users.lines().map(|line| line.split(':'));
            let mut user = fields
                .find(|fields| fields.clone().next() == Some(name))?
                .skip(2);
            Some((user.next()?.parse().ok()?, user.next()?.parse().ok()?))
        });
        let (user, group) = ids.ok_or_else(|| io::Error::other("no account other than root"))?;
        chown(folder, Some(user), Some(group))?;
        Ok(Self(Some((user, group))))
    }

    pub(super) fn runs(self, command: &mut Command) {
        use std::os::unix::process::CommandExt;

        if let Self(Some((user, group))) = self {
            command.uid(user).gid(group);
        }
    }
}

/// Other systems have no root.
#[cfg(not(unix))]
#[derive(Clone, Copy, Debug)]
pub(super) struct Account;

#[cfg(not(unix))]
impl Account {
    pub(super) fn for_folder(_: &Path) -> io::Result<Self> {
        Ok(Self)
    }

    pub(super) fn runs(self, _: &mut Command) {}
}
