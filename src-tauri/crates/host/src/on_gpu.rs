//! Closing the app while a model is opened on a GPU is no crash.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, channel};

use chat::Chat;
use devices::Gpu;
use store::Store;

use super::*;

/// A model whose opening uses a GPU until the test releases it.
struct SlowModel {
    devices: Devices,
    gpu: Gpu,
    begun: Sender<()>,
    go: Receiver<()>,
    ended: Sender<bool>,
}

impl ModelHost for SlowModel {
    fn open(
        &mut self,
        _: &ModelChoice,
        _: &chat::ModelOptions,
        _: &mut dyn FnMut(Opening),
    ) -> Result<chat::ModelInfo, chat::Failure> {
        let mark = self.devices.begin(&self.gpu);
        let _ = self.begun.send(());
        let _ = self.go.recv();
        drop(mark);
        // Work after the end is not marked either.
        let _ = self.ended.send(self.devices.begin(&self.gpu).is_some());
        Err(chat::Failure::new(chat::FailureCode::Other, "none"))
    }

    fn close(&mut self) {}

    fn info(&self) -> Option<&chat::ModelInfo> {
        None
    }

    fn prompt(&mut self, _: &Conversation, _: &AtomicBool) -> Result<Prompt, Failure> {
        unreachable!("no model is open")
    }

    fn submit(&mut self, _: ModelRequest) -> Result<(), Failure> {
        unreachable!("no model is open")
    }

    fn step(
        &mut self,
        _: &AtomicBool,
        _: &mut dyn FnMut(RequestId, Event<'_>),
    ) -> Vec<(RequestId, Result<Finished, Failure>)> {
        Vec::new()
    }
}

#[test]
fn closing_while_a_model_loads_on_a_gpu_is_no_crash() {
    let folder = tempfile::tempdir().expect("made");
    let markers = CrashMarkers::new(folder.path());
    let devices =
        || Devices::with_program(folder.path(), markers.clone(), "/bin/false".into(), vec![]);
    let gpu = Gpu {
        name: "Card".into(),
        id: "0000:01:00.0".into(),
        bus: String::new(),
        driver: "radv 1".into(),
        api: "Vulkan".into(),
        kind: "discrete".into(),
        refused: None,
    };
    let (begun, begins) = channel();
    let (go, wait) = channel();
    let (ended, ends) = channel();
    let model = SlowModel {
        devices: devices(),
        gpu,
        begun,
        go: wait,
        ended,
    };
    let store = Store::in_memory().expect("a store");
    let chat = Chat::start(store, Box::new(model), Box::new(|_| {})).expect("a chat");
    begins.recv().expect("it is being opened");
    let mark = markers.file(Work::GpuInUse);
    assert!(mark.exists());
    close(&chat, &markers);
    assert!(!mark.exists());
    go.send(()).expect("it waits");
    assert!(!ends.recv().expect("it has ended"), "marked after the end");
    assert!(
        markers
            .crashes::<serde_json::Value>(Work::GpuInUse)
            .is_empty()
    );
}
