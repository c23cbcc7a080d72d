//! Errors of a GPU.

/// Error of a GPU.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GpuError {
    /// No adapter that may be used.
    #[error("no GPU: {0}")]
    NoDevice(String),
    /// The kernels cannot run this model, or not on this device.
    #[error("the GPU backend cannot run this: {0}")]
    Unsupported(String),
    /// Out of device memory.
    #[error("the GPU's memory is full ({0})")]
    OutOfMemory(String),
    /// The weights cannot be read from their file.
    #[error("{0}")]
    Read(String),
    /// Device lost: the driver has given it up, or it left the machine.
    #[error("the GPU was lost: {0}")]
    Lost(String),
    /// A submit timed out, after this number of seconds.
    #[error("the GPU has not answered for {0} s")]
    TimedOut(u64),
    /// An impossible result, such as NaN.
    #[error("the GPU returned a wrong result: {0}")]
    Wrong(String),
    /// The driver refuses a kernel or a buffer.
    #[error("the GPU's driver rejected a request: {0}")]
    Refused(String),
}
