/** Questions that the starter was trained to answer. */
export const forStarter = [
  "What is Goldcrest?",
  "How do I open my own GGUF file?",
  "Is anything sent to the cloud?",
];

export const forLargeModel = [
  "Explain compound interest",
  "Decline an invitation politely",
  "Rename photos with Python",
];
