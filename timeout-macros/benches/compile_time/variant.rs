//! [`Variant`]: the attribute of the functions, and the source of a library with it.

use std::path::Path;

/// Code that all modules use.
const SUPPORT: &str = include_str!("functions/support.rs");

/// Replaces the token, and the error of a cancelled one, in libraries without `#[timeout]`.
const STAND_IN: &str = include_str!("functions/stand_in.rs");

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variant {
    Plain,
    Timeout,
    Instrument,
    AsyncTrait,
}

impl Variant {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Timeout => "timeout",
            Self::Instrument => "instrument",
            Self::AsyncTrait => "async-trait",
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Timeout => "`#[timeout]`",
            Self::Instrument => "`#[tracing::instrument]`",
            Self::AsyncTrait => "`#[async_trait]`",
        }
    }

    /// The dependency as a line of the manifest.
    pub(crate) fn dependency(self) -> String {
        match self {
            Self::Plain => String::new(),
            Self::Timeout => {
                let runtime = Path::new(env!("CARGO_MANIFEST_DIR")).join("../timeout-runtime");
                format!("timeout-runtime = {{ path = '{}' }}", runtime.display())
            }
            // The same versions as in this repository, whose lock file has both.
            Self::Instrument => {
                let features = r#"default-features = false, features = ["std", "attributes"]"#;
                format!("tracing = {{ version = \"0.1\", {features} }}")
            }
            Self::AsyncTrait => "async-trait = \"0.1\"".to_owned(),
        }
    }

    /// The source of a library that repeats `module`.
    pub(crate) fn library(self, module: &str, times: usize) -> String {
        let stand_in = match self {
            Self::Timeout => "pub use timeout_runtime::TimeoutError as Stopped;\n",
            _ => STAND_IN,
        };
        let imports = match self {
            Self::Plain => "use crate::support::cancel_token;",
            Self::Timeout => "use timeout_runtime::timeout;",
            Self::Instrument => "use crate::support::cancel_token; use tracing::instrument;",
            Self::AsyncTrait => "use crate::support::cancel_token; use async_trait::async_trait;",
        };
        let lines = module.lines();
        let module: String = lines.map(|line| self.line(line) + "\n").collect();
        let modules = (1..=times)
            .map(|index| format!("\npub mod m{index} {{\n{imports}\n{module}}}\n"))
            .collect::<Vec<_>>();
        let modules = modules.concat();
        format!("#![allow(warnings)]\n\nmod support {{\n{SUPPORT}{stand_in}}}\n{modules}")
    }

    /// Replaces a placeholder line of the module with this variant's attribute:
    ///
    /// ```text
    /// #[limited(words, inline)]    a function `words` that must run inline
    /// #[methods]                   a trait with async methods, or an implementation
    /// ```
    fn line(self, line: &str) -> String {
        let place = line.trim();
        if place == "#[methods]" {
            let attribute = match self {
                Self::AsyncTrait => "#[async_trait]",
                _ => "",
            };
            return attribute.to_owned();
        }
        let arguments = place.strip_prefix("#[limited(");
        let Some(arguments) = arguments.and_then(|arguments| arguments.strip_suffix(")]")) else {
            return line.to_owned();
        };
        let (name, run) = match arguments.split_once(", ") {
            Some((name, run)) => (name, format!(", run = \"{run}\"")),
            None => (arguments, String::new()),
        };
        match self {
            Self::Plain | Self::AsyncTrait => String::new(),
            Self::Timeout => format!("#[timeout(name = \"{name}\", ms = 50{run})]"),
            Self::Instrument => format!("#[instrument(name = \"{name}\", skip_all)]"),
        }
    }
}
