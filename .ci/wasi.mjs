// Runs a program for wasm32-wasip1: `node .ci/wasi.mjs PROGRAM`.

import { readFile } from 'node:fs/promises';
import { WASI } from 'node:wasi';

const [program] = process.argv.slice(2);
const wasi = new WASI({ version: 'preview1', args: [program], env: process.env });
const module = await WebAssembly.compile(await readFile(program));
const instance = await WebAssembly.instantiate(module, wasi.getImportObject());
process.exit(wasi.start(instance));
