/** The words of the wire that views may speak. */
export type {
  ChatSummary,
  Device,
  MessageState,
  ModelStatus,
  Sampling,
  SearchHit,
  Settings,
  Stage,
  Stats,
  WireError,
} from "../host/host";
