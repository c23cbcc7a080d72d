/// A GPU that does not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GpuError {
    /// No adapter that may be used.
    #[error("no GPU: {0}")]
    NoDevice(String),
    /// A model or a device that the kernels cannot serve.
    #[error("the GPU backend cannot run this: {0}")]
    Unsupported(String),
    /// No memory left.
    #[error("the GPU's memory is full ({0})")]
    OutOfMemory(String),
    /// The weights that it was to take cannot be read.
    #[error("{0}")]
    Read(String),
    /// The driver has given the device up, or it left the machine.
    #[error("the GPU was lost: {0}")]
    Lost(String),
    /// It does not answer.
    #[error("the GPU has not answered for {0} s")]
    TimedOut(u64),
    /// It answers with what cannot be.
    #[error("the GPU answered wrongly: {0}")]
    Wrong(String),
    /// The driver refuses a kernel or a buffer.
    #[error("the GPU's driver refused: {0}")]
    Refused(String),
}
