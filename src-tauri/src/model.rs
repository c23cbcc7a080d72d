//! stub
use chat::{
    Failure, FailureCode, Finish, Generate, LoadOptions, ModelChoice, ModelInfo, Piece, Turn,
};
use std::sync::atomic::AtomicBool;
#[derive(Default)]
pub struct EngineModel;
impl Generate for EngineModel {
    fn open(
        &mut self,
        _: &ModelChoice,
        _: &LoadOptions,
        _: &mut dyn FnMut(f32),
    ) -> Result<ModelInfo, Failure> {
        Err(Failure::new(FailureCode::NoModel, "stub"))
    }
    fn info(&self) -> Option<&ModelInfo> {
        None
    }
    fn count(&mut self, _: &Turn) -> Result<usize, Failure> {
        Ok(1)
    }
    fn generate(
        &mut self,
        _: &Turn,
        _: &AtomicBool,
        _: &mut dyn FnMut(Piece<'_>),
    ) -> Result<Finish, Failure> {
        Err(Failure::new(FailureCode::NoModel, "stub"))
    }
}
