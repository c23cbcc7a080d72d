import type { CallView, Consent, Message, Part, ToolOutcome, ToolView } from "../host";
import { appended } from "../parts";

/** A call in the script of an answer. */
type ScriptedCall = {
  tool: string;
  arguments: string;
  result: string;
  outcome?: ToolOutcome;
  asks?: true;
  asksBecause?: string;
};

const program = `import math

def area(radius: float) -> float:
    """The area of a circle."""
    return math.pi * radius ** 2

print(round(area(5.5), 2))`;

const found = [
  { title: "A story about a small bird", date: "2026-11-24", matches: 3 },
  { title: "Notes for the talk on bird migration", date: "2026-10-14", matches: 12 },
  { title: "Packing list for the Lofoten in March", date: "2026-11-23", matches: 1 },
];

const tree = {
  folder: "/data/ada/Notes",
  files: Array.from({ length: 40 }, (_, at) => ({
    name: `note-${at + 1}.md`,
    tags: ["bird", "field"],
    size: { bytes: 812 * (at + 1) },
  })),
};

const OUTSIDE =
  "This chat has content from outside, which may have led to this call. So it is asked each time.";

const calls: Record<string, ScriptedCall> = {
  calculate: {
    tool: "calculate",
    arguments: '{"expression": "12 * 3"}',
    result: "36",
  },
  divide: {
    tool: "calculate",
    arguments: '{"expression": "12 / 0"}',
    result: "Division by zero at character 4. Check the divisor.",
    outcome: "failed",
  },
  python: { tool: "run_python", arguments: JSON.stringify({ code: program }), result: "95.03\n" },
  search: {
    tool: "search_chats",
    arguments: '{"query": "goldcrest", "limit": 3}',
    result: JSON.stringify(found),
    asks: true,
  },
  files: {
    tool: "files_read_file",
    arguments: '{"path": "/data/ada/Notes"}',
    result: JSON.stringify(tree),
    asks: true,
  },
  write: {
    tool: "files_write_file",
    arguments: JSON.stringify({ path: "/data/ada/Notes/birds.md", text: "# Birds\n\n- Wren\n" }),
    result: "Written.",
    asks: true,
  },
  forecast: {
    tool: "weather_forecast",
    arguments: '{"place": "Bodø", "days": 3}',
    result: "**Snow**, −4 °C, wind from the north. <b>Not bold</b>",
    asks: true,
    asksBecause: OUTSIDE,
  },
};

/** Calls that a question such as "Tools: calculate, search" leads to. */
export function callsFor(question: string): ScriptedCall[] {
  const names = /^Tools: ([\w, ]+)/u.exec(question)?.[1]?.split(", ") ?? [];
  return names.flatMap((name) => calls[name.trim()] ?? []);
}

/** Callbacks of an answer that calls tools. */
type CallingStage = {
  tools: () => ToolView[];
  /** Resolves when a call that runs is to return. */
  isDue: () => Promise<void>;
  isAllowed: (tool: string) => boolean;
  /** Resolves to the user's decision. */
  ask: (call: string) => Promise<Consent>;
  isOver: () => boolean;
  called: () => void;
};

/** Runs calls one after the other, and puts their results into the message. */
export async function runCalls(
  message: Message,
  scripted: ScriptedCall[],
  stage: CallingStage,
): Promise<void> {
  const made = scripted.map((call, at) => ({ ...call, id: `${call.tool}-${message.id}-${at}` }));
  const add = (...parts: Part[]): void => {
    message.parts = appended(message.parts, parts);
  };
  for (const { id, tool: name, arguments: given } of made)
    add({ kind: "tool-call", id, name, arguments: given });
  for (const { id, tool: name, asks, asksBecause = null, ...call } of made) {
    const tool = stage.tools().find((each) => each.name === name);
    if (!tool) continue;
    const show = (...calls: CallView[]): void => {
      message.calls = calls;
      stage.called();
    };
    const view: CallView = { id, status: "asks", tool, asksBecause };
    const server = tool.source.kind === "server" ? tool.source.name : null;
    if (asks && (asksBecause !== null || !stage.isAllowed(name))) {
      show(view);
      const consent = await stage.ask(id);
      if (stage.isOver()) return;
      if (consent.kind === "denied") {
        const text = `The user did not allow this call. ${consent.reason}`.trim();
        add({ kind: "tool-result", id, text, outcome: "denied", server });
        show();
        continue;
      }
    }
    show({ ...view, status: "runs" });
    await stage.isDue();
    if (stage.isOver()) return;
    const { result: text, outcome = "done" } = call;
    add({ kind: "tool-result", id, text, outcome, server });
    show();
  }
}
