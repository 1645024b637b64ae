// Starts `xrun lsp` for .exp files.
const { workspace } = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = () => {
  const command = workspace.getConfiguration("xrun").get("path");
  client = new LanguageClient("xrun", { command, args: ["lsp"] }, { documentSelector: [{ scheme: "file", language: "exp" }] });
  return client.start();
};

exports.deactivate = () => client?.stop();
