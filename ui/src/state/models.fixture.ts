/** Models of the scripted host, for tests of the views. */
export { onDisk, q4 } from "../host/fake/models";
