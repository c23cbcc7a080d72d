/** Questions that the starter was trained to answer. */
export const forStarter = [
  "What is Goldcrest?",
  "How do I open my own GGUF file?",
  "Is anything sent to the cloud?",
];

export const forLargeModel = [
  "Explain compound interest with a table",
  "Help me decline an invitation politely",
  "Write a Python script that renames photos by date",
];
