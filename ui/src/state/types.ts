/** The words of the wire that views may speak. */
export type {
  AnswerStats,
  ChatSummary,
  Device,
  Failure,
  FailureCode,
  MessageState,
  ModelInfo,
  ModelStatus,
  SamplingSettings,
  SearchHit,
  Settings,
  Stage,
} from "../host/host";
