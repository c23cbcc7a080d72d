/** The words of the wire that views may speak. */
export type {
  Agreement,
  AnswerStats,
  ChatSummary,
  CheckDistance,
  Device,
  Failure,
  FailureCode,
  MessageState,
  ModelCheck,
  ModelInfo,
  ModelStatus,
  SamplingSettings,
  SearchHit,
  Settings,
  Stage,
} from "../host/host";
