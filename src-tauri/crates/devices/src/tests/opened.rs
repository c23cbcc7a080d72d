//! Requests of a model on a GPU: crash markers, and the record of its answers and failures.

use std::sync::atomic::AtomicBool;

use engine::{GenerateParams, ModelRequest, NoBlocks, Priority, Prompt, RequestId, Signals};

use super::*;

/// Opens a model that computes on the CPU as one on this GPU.
fn opened_on(gpu: Option<Gpu>) -> OpenModel {
    OpenModel {
        engine: Engine::load(&model(), &LoadOptions::default(), &mut |_| {}).expect("it loads"),
        gpu,
        explanation: Explanation {
            reason: Reason::GpuRequested(None),
            fit: None,
            ignored_level: None,
        },
        marker: None,
        report: None,
    }
}

/// Runs a request to its end. Returns true if a crash marker exists in every pass but the last.
fn is_marked(opened: &mut OpenModel, devices: &Devices, priority: Priority) -> bool {
    let marker = devices.markers.file(Work::GpuInUse);
    let request = ModelRequest {
        id: RequestId(1),
        priority,
        conversation: 1,
        prompt: Prompt::of_ids(vec![1; 200]),
        params: GenerateParams {
            max_tokens: Some(3),
            ..GenerateParams::default()
        },
        signals: Signals::default(),
    };
    opened.engine.submit(request).expect("there is room");
    let never = AtomicBool::new(false);
    let mut is_marked = true;
    loop {
        let mut step = StepOptions {
            preempt: &never,
            blocks: &mut NoBlocks,
        };
        if !opened
            .step(Some(devices), &mut step, &mut |_, _| {})
            .is_empty()
        {
            return is_marked;
        }
        is_marked &= marker.exists();
    }
}

#[test]
fn only_answers_with_tokens_count_as_successful() {
    let machine = Machine::new(&[CARD], &writes(50));
    let devices = machine.devices();
    let gpu = machine.choose("auto").gpu;
    let key = GpuKey::of(gpu.as_ref().expect("the card"));
    let mut cache = devices.cache();
    cache.entry(&key).record_crash();
    devices.write(&cache);
    let mut opened = opened_on(gpu);
    let mut good_answers = |priority| {
        is_marked(&mut opened, &devices, priority);
        devices.cache().entry(&key).good_answers
    };
    assert_eq!(good_answers(Priority::ReadAhead), 0);
    assert_eq!(good_answers(Priority::Answer), 1);
}

#[test]
fn a_model_on_a_gpu_has_a_crash_marker_while_it_works_and_its_failure_is_recorded() {
    let machine = Machine::new(&[CARD], &writes(50));
    let devices = machine.devices();
    let marker = machine.markers().file(Work::GpuInUse);
    let mut opened = opened_on(machine.choose("auto").gpu);
    for priority in [Priority::ReadAhead, Priority::Answer] {
        assert!(is_marked(&mut opened, &devices, priority) && !marker.exists());
    }
    opened.record_failure(Some(&devices), "it is lost".to_owned());
    assert_eq!(
        opened.explanation.reason,
        Reason::Failed("it is lost".to_owned())
    );
    let marked = is_marked(&mut opened, &devices, Priority::Answer);
    assert!(!marked, "it is on the CPU");
    let cache = fs::read_to_string(devices.file()).expect("something is recorded");
    assert_eq!(cache.matches("it is lost").count(), 1);
}
