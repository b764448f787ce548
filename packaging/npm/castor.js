#!/usr/bin/env node
// Starts the castor of this system: a package of its own, which npm installs beside this one.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");

const name = `castor-agent-${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/castor`);
} catch {
  console.error(`castor: there is no package ${name}. castor has none for this system, or npm left out optional packages.`);
  process.exit(1);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
// A terminal sends signals to both; others reach only this process.
const passed = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"];
for (const signal of passed) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  console.error(`castor: ${program} cannot be started: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => process.exit(code ?? 128 + (constants.signals[signal] ?? 0)));
