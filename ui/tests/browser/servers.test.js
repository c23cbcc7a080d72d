// Tools and their servers in the settings, and what the window says about the network.
import assert from "node:assert/strict";
import { button, calls, scenes, soon } from "./window.js";

const scene = scenes();
const view = { scene: "servers" };

async function openSettings(page, tab = "Tools") {
  await page.keyboard.press("Control+,");
  await page.getByRole("tab", { name: tab }).click();
}
const server = (page, name) => page.getByRole("button", { name: new RegExp(`^${name}`) });
const saved = async (page) => (await calls(page, "saveServers")).at(-1)[1];

scene("tools in new chats and limits are saved", view, async (page) => {
  await openSettings(page);
  await page.getByRole("switch", { name: "Python" }).click();
  const rounds = page.getByRole("spinbutton", { name: "Rounds of calls" });
  await rounds.fill("99");
  await rounds.press("Tab");
  assert.equal(await rounds.inputValue(), "32");
  await soon(async () => {
    const [, settings] = (await calls(page, "saveSettings")).at(-1);
    assert.deepEqual(settings.tools, ["calculate", "search_chats", "run_python"]);
    assert.equal(settings.toolRounds, 32);
  });
});

scene("a server shows its status, reach, tools, log and last error", view, async (page) => {
  await openSettings(page);
  await server(page, "files").click();
  await page.getByText("Sandboxed: no network, only the folders below.").waitFor();
  await page
    .getByRole("list", { name: "Folders of “files”" })
    .getByText("read and change")
    .waitFor();
  await page
    .getByText("Cannot be used: Its description is longer than 1,024 characters.")
    .waitFor();
  await button(page, "Log").click();
  await page.getByText(/Secure MCP Filesystem Server running/).waitFor();
  await button(page, "Stop").click();
  await button(page, "Start").click();
  assert.deepEqual(await calls(page, "stopServer", "startServer"), [
    ["stopServer", "files"],
    ["startServer", "files"],
  ]);
  await server(page, "files").click();
  await server(page, "weather").getByText("Did not start: weather-mcp was not found.").waitFor();
  await server(page, "weather").click();
  await page.getByText("weather-mcp was not found. Install it, or give its whole path.").waitFor();
  await page.getByText("Sandboxed: the network, none of your folders.").waitFor();
});

scene("a server is added by the form, with nothing that was not given", view, async (page) => {
  await openSettings(page);
  await button(page, "Add a server…").click();
  const form = page.getByRole("form", { name: "New server" });
  const field = (name) => form.getByRole("textbox", { name, exact: true });
  await button(page, "Add").click();
  await form.getByRole("alert").getByText("Give the server a name.").waitFor();
  await field("Server name").fill("pictures");
  await field("Command").fill("uvx");
  await field("Arguments").fill("pictures-mcp\n--all files");
  await button(page, "Add a variable").click();
  await field("Variable").fill("TOKEN");
  const value = form.getByLabel("Value of TOKEN");
  assert.equal(await value.getAttribute("type"), "password");
  await value.fill("secret");
  await button(page, "Add a folder…").click();
  await form.getByText("/data/ada/Pictures").waitFor();
  await form.getByRole("switch", { name: "Sandbox" }).click();
  await form.getByText(/this program can read and change all your files/).waitFor();
  await form.getByRole("switch", { name: "Sandbox" }).click();
  await button(page, "Add").click();
  await server(page, "pictures").waitFor();
  assert.deepEqual((await saved(page)).at(-1), {
    name: "pictures",
    command: "uvx",
    args: ["pictures-mcp", "--all files"],
    env: { TOKEN: "secret" },
    cwd: null,
    folders: [{ path: "/data/ada/Pictures", writable: false }],
    network: false,
    sandboxed: true,
    enabled: true,
  });
});

scene("a change of a server keeps its stored values", view, async (page) => {
  await openSettings(page);
  await server(page, "notes").click();
  await button(page, "Edit…").click();
  const form = page.getByRole("form", { name: "Server “notes”" });
  const value = form.getByLabel("Value of NOTES_TOKEN");
  assert.equal(await value.getAttribute("placeholder"), "Stored");
  await form.getByRole("switch", { name: "Use the network" }).click();
  await button(page, "Save").click();
  await form.waitFor({ state: "hidden" });
  const { env, network } = (await saved(page)).find(({ name }) => name === "notes");
  assert.deepEqual([env, network], [{ NOTES_TOKEN: "" }, true]);
});

scene("a removed server comes back by undo; stored values are asked about", view, async (page) => {
  await openSettings(page);
  await server(page, "weather").click();
  await button(page, "Remove").click();
  await server(page, "weather").waitFor({ state: "hidden" });
  await button(page, "Undo").click();
  await server(page, "weather").waitFor();
  await server(page, "notes").click();
  await button(page, "Remove").click();
  const question = page.getByRole("group", { name: "Remove “notes”?" });
  await question.getByText("The stored values of its environment are deleted with it.").waitFor();
  await question.getByRole("button", { name: "Remove" }).click();
  await server(page, "notes").waitFor({ state: "hidden" });
});

scene("pasted servers get no folder unless it is given", view, async (page) => {
  await openSettings(page);
  await button(page, "Paste JSON…").click();
  const json = page.getByRole("textbox", { name: "JSON" });
  await json.fill("{");
  await button(page, "Read").click();
  await page
    .getByRole("alert")
    .getByText(/This is not JSON/)
    .waitFor();
  const args = ["maps-mcp", "/data/ada/Maps", "/data/ada/Tracks"];
  await json.fill(JSON.stringify({ mcpServers: { maps: { command: "uvx", args } } }));
  await button(page, "Read").click();
  await page.getByText(/“autoApprove” was left out/).waitFor();
  const access = page.getByRole("radiogroup", { name: "Access to /data/ada/Maps" });
  assert.equal(await access.getByRole("radio", { name: "No" }).isChecked(), true);
  await access.getByRole("radio", { name: "Read", exact: true }).check();
  await button(page, "Add").click();
  await server(page, "maps").waitFor();
  const { folders, command } = (await saved(page)).find(({ name }) => name === "maps");
  assert.equal(command, "uvx");
  assert.deepEqual(folders, [{ path: "/data/ada/Maps", writable: false }]);
});

scene("Escape leaves the form and keeps the settings open", view, async (page) => {
  await openSettings(page);
  await button(page, "Add a server…").click();
  await page.getByRole("form", { name: "New server" }).waitFor();
  await page.keyboard.press("Escape");
  await button(page, "Add a server…").waitFor();
});

scene("the window names the servers that may use the network", view, async (page) => {
  assert.equal(await button(page, "Offline: network connections").count(), 0);
  await openSettings(page, "Privacy");
  await page.getByText("“weather” may use the network.").waitFor();
  await page.keyboard.press("Escape");
  await openSettings(page);
  await page.getByRole("switch", { name: "Offer the tools of “weather”" }).click();
  await page.getByRole("tab", { name: "Privacy" }).click();
  await page.getByText("What stays here").waitFor();
  assert.equal(await page.getByText("may use the network").count(), 0);
});

scene("a server that starts is shown at once", view, async (page) => {
  await openSettings(page);
  await page.evaluate(() => window.stage.setServer("weather", { status: { kind: "starting" } }));
  await server(page, "weather").getByText("Starting…").waitFor();
});
