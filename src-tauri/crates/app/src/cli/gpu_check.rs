//! `goldcrest gpu-check`: the child process of [`devices`], because drivers may crash or hang.

use ::devices::CheckRequest;

use super::args::GpuCheckArgs;
use super::output::{self, CliError};

pub fn run(args: GpuCheckArgs) -> Result<(), CliError> {
    let software = ::devices::software_gpu();
    let Some(model) = args.model else {
        return output::json(&::devices::list_gpus(software));
    };
    let request = CheckRequest {
        device: args.device,
        model,
        bundled_model: args.bundled_model,
        threads: args.threads,
        software,
        matrices: !args.without_matrices,
    };
    let found =
        ::devices::check_gpu(&request).map_err(|error| CliError::file(&request.model, error))?;
    output::json(&found)
}
