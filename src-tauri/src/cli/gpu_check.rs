//! `goldcrest gpu-check`: what [`gpus`](crate::gpus) asks of a child process. Drivers are met here first.

use engine::CheckOrder;

use super::{CliError, GpuCheckArgs, output};
use crate::device;
use crate::gpus::Gpu;

pub fn run(args: GpuCheckArgs) -> Result<(), CliError> {
    let software = device::software_gpu();
    let Some(model) = args.model else {
        let gpus: Vec<Gpu> = engine::gpus(software).into_iter().map(Gpu::from).collect();
        return output::json(&gpus);
    };
    let order = CheckOrder {
        device: args.device,
        model,
        demo_model: args.demo_model,
        threads: args.threads,
        software,
        matrices: !args.without_matrices,
    };
    let found = engine::check_gpu(&order).map_err(|error| CliError::file(&order.model, error))?;
    output::json(&found)
}
