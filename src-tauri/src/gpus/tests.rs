//! Whatever a GPU, its driver or a layer above it does, there is a chat on the CPU and a reason. The children are scripts.

#![cfg(unix)]

use std::fs;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, channel};

use chat::{Chat, Generate, ModelChoice, Store};
use tempfile::TempDir;

use super::*;
use crate::model::EngineModel;

const CARD: &str = r#"{"name":"Card","id":"0000:01:00.0","driver":"radv 1","api":"Vulkan","kind":"discrete","refused":null}"#;
const TWIN: &str = r#"{"name":"Card","id":"0000:02:00.0","driver":"radv 1","api":"Vulkan","kind":"discrete","refused":null}"#;

/// What a check prints of a GPU that writes so many tokens a second where the CPU writes 10.
fn writes(rate: u32) -> String {
    let rates = format!(
        r#"{{"gpu":{{"prefill":100.0,"decode":{rate}}},"cpu":{{"prefill":100.0,"decode":10}}}}"#
    );
    format!(r#"echo '{{"steps":[],"fault":null,"full":false,"rates":{rates}}}'"#)
}

fn faulty(fault: &str, full: bool) -> String {
    format!(r#"echo '{{"steps":[],"fault":"{fault}","full":{full},"rates":null}}'"#)
}

/// A machine with these GPUs, whose checks do as a line of shell says.
struct Machine(TempDir);

impl Machine {
    fn new(gpus: &[&str], check: &str) -> Self {
        let machine = Self(tempfile::tempdir().expect("made"));
        machine.becomes(&format!("echo '[{}]'", gpus.join(",")), check);
        machine
    }

    fn becomes(&self, list: &str, check: &str) {
        let script = format!(
            "if [ $# = 0 ]; then {list}; else echo $2 >> {}; {check}; fi\n",
            self.0.path().join("checked").display()
        );
        fs::write(self.script(), script).expect("written");
    }

    fn script(&self) -> PathBuf {
        self.0.path().join("child.sh")
    }

    /// As the app finds it when it starts.
    fn gpus(&self) -> Gpus {
        Gpus {
            small: 0,
            ..Gpus::asking(
                self.0.path(),
                self.markers(),
                "/bin/sh".into(),
                vec![self.script().into()],
            )
        }
    }

    fn markers(&self) -> CrashMarkers {
        CrashMarkers::new(self.0.path())
    }

    fn decide(&self, asked: &str) -> Decision {
        self.decide_telling(asked, &mut || {})
    }

    fn decide_telling(&self, asked: &str, on_check: &mut dyn FnMut()) -> Decision {
        let model = demo_model::file().expect("the demo model is there");
        let asked = asked.parse().expect("a device");
        self.gpus().decide(asked, &model, Some(1), on_check)
    }

    /// Ids of the devices that were checked.
    fn checked(&self) -> Vec<String> {
        let ids = fs::read_to_string(self.0.path().join("checked")).unwrap_or_default();
        ids.lines().map(str::to_owned).collect()
    }
}

#[track_caller]
fn no_gpu(decision: &Decision, why: &str) {
    assert_eq!(decision.gpu, None);
    let because = decision.because.as_deref().unwrap_or_default();
    assert!(because.contains(why), "{because}");
}

#[test]
fn a_gpu_is_taken_when_it_was_measured_faster_and_measured_once() {
    let machine = Machine::new(&[CARD], &writes(50));
    for told in [1, 0] {
        let mut checks = 0;
        let decision = machine.decide_telling("auto", &mut || checks += 1);
        assert_eq!(checks, told);
        let id = "0000:01:00.0".to_owned();
        assert_eq!(decision.device, DeviceRequest::Gpu(Some(id)));
        assert!(
            decision
                .because
                .is_some_and(|because| because.contains("50.0"))
        );
    }
    assert_eq!(machine.checked().len(), 1);
    // Another CPU to beat is another measurement.
    let model = demo_model::file().expect("the demo model is there");
    let gpus = machine.gpus();
    gpus.decide(DeviceRequest::Auto, &model, Some(2), &mut || {});
    assert_eq!(machine.checked().len(), 2);
}

#[test]
fn for_a_small_model_no_gpu_is_looked_for_unless_one_is_asked_for() {
    let machine = Machine::new(&[CARD], &writes(50));
    let decide = |asked: &str| {
        let gpus = Gpus {
            small: SMALL,
            ..machine.gpus()
        };
        let model = demo_model::file().expect("the demo model is there");
        gpus.decide(
            asked.parse().expect("a device"),
            &model,
            Some(1),
            &mut || {},
        )
    };
    no_gpu(&decide("auto"), "fast enough for a model this small");
    assert_eq!(machine.checked(), [""; 0]);
    assert!(decide("gpu").gpu.is_some());
}

#[test]
fn a_slower_gpu_is_used_only_when_it_is_asked_for() {
    let machine = Machine::new(&[CARD], &writes(5));
    no_gpu(&machine.decide("auto"), "no faster here");
    assert!(machine.decide("gpu").gpu.is_some());
    assert_eq!(machine.decide("cpu"), Decision::plain(DeviceRequest::Cpu));
}

#[test]
fn cooperative_matrices_are_used_where_they_are_right_and_faster() {
    for (found, used) in [
        (r#"{"fault":null,"speedup":2.5}"#, true),
        (r#"{"fault":null,"speedup":0.9}"#, false),
        (r#"{"fault":"it lies","speedup":null}"#, false),
        ("null", false),
    ] {
        let check = writes(50).replace(r#""rates""#, &format!(r#""matrices":{found},"rates""#));
        let decision = Machine::new(&[CARD], &check).decide("auto");
        assert!(decision.gpu.is_some());
        assert_eq!(decision.matrices, used, "{found}");
    }
}

#[test]
fn a_gpu_that_crashes_with_cooperative_matrices_is_used_without_them() {
    let with = "case $* in *--without-matrices*) ;; *) kill -KILL $$ ;; esac";
    let machine = Machine::new(&[CARD], &format!("{with}; {}", writes(50)));
    for _ in 0..2 {
        let decision = machine.decide("auto");
        assert!(decision.gpu.is_some() && !decision.matrices);
    }
    // With them, without layers, without them; and that is remembered.
    assert_eq!(machine.checked().len(), 3);
    let model = demo_model::file().expect("the demo model is there");
    let verdicts = machine.gpus().verdicts(&model, Some(1), false, &mut || {});
    let check = verdicts.expect("they are listed").remove(0).check;
    let words = check.as_ref().and_then(matrices).expect("they were tried");
    assert!(words.contains("crashes"), "{words}");
}

#[test]
fn a_gpu_that_hangs_with_cooperative_matrices_is_used_without_them() {
    let with = "case $* in *--without-matrices*) ;; *) exec sleep 60 ;; esac";
    let machine = Machine::new(&[CARD], &format!("{with}; {}", writes(50)));
    let mut gpus = machine.gpus();
    gpus.check.timeout = Duration::from_secs(5);
    let model = demo_model::file().expect("the demo model is there");
    let decision = gpus.decide(DeviceRequest::Auto, &model, Some(1), &mut || {});
    assert!(decision.gpu.is_some() && !decision.matrices);
    assert_eq!(machine.checked().len(), 2);
}

#[test]
fn of_two_gpus_of_one_name_the_one_that_works_is_used() {
    let breaks = format!("[ $2 = 0000:01:00.0 ] && kill -KILL $$; {}", writes(50));
    let machine = Machine::new(&[CARD, TWIN], &breaks);
    let decision = machine.decide("auto");
    assert_eq!(
        decision.gpu.map(|gpu| gpu.id).as_deref(),
        Some("0000:02:00.0")
    );
    no_gpu(&machine.decide("gpu:0000:01:00.0"), "crashes");
    no_gpu(&machine.decide("gpu:0000:03:00.0"), "0000:03:00.0");
    // One that crashes is tried three times: without layers, and without cooperative matrices.
    assert_eq!(
        machine.checked(),
        [
            "0000:01:00.0",
            "0000:01:00.0",
            "0000:01:00.0",
            "0000:02:00.0"
        ]
    );
}

#[test]
fn a_gpu_that_lies_crashes_or_hangs_is_off_until_its_driver_changes() {
    for (check, why) in [
        (faulty("it computes wrongly", false), "computes wrongly"),
        (
            "echo a layer fails >&2; kill -KILL $$".to_owned(),
            "crashes",
        ),
        ("exec sleep 600".to_owned(), "hangs"),
        ("echo nonsense".to_owned(), "cannot be read"),
    ] {
        let machine = Machine::new(&[CARD], &check);
        let mut gpus = machine.gpus();
        if why == "hangs" {
            gpus.check.timeout = Duration::from_secs(1);
        }
        let model = demo_model::file().expect("the demo model is there");
        no_gpu(
            &gpus.decide(DeviceRequest::Auto, &model, Some(1), &mut || {}),
            why,
        );
        let later = machine.decide("gpu");
        no_gpu(&later, why);
        let report = later.report.expect("a report");
        assert!(
            report.contains("radv 1") && report.contains("0000:01:00.0"),
            "{report}"
        );
        assert_eq!(report.contains("a layer fails"), why == "crashes");
        assert_eq!(
            machine.checked().len(),
            match why {
                "crashes" => 3,
                "hangs" => 2,
                _ => 1,
            }
        );

        let mended = CARD.replace("radv 1", "radv 2");
        machine.becomes(&format!("echo '[{mended}]'"), &writes(50));
        assert!(machine.decide("auto").gpu.is_some());
    }
}

#[test]
fn what_was_measured_goes_along_where_the_gpu_must_be_worth_it() {
    let machine = Machine::new(&[CARD], &writes(50));
    let rates = machine.decide("auto").rates.expect("it was measured");
    assert!(rates.favour_gpu());
    assert_eq!(machine.decide("gpu").rates, None);
}

#[test]
fn what_there_was_no_room_for_is_remembered_and_told_until_there_is() {
    let machine = Machine::new(&[CARD], &writes(50));
    let gpu = machine.decide("auto").gpu.expect("it is taken");
    let model = demo_model::file().expect("the demo model is there");
    let told = || {
        let verdicts = machine.gpus().verdicts(&model, Some(1), false, &mut || {});
        verdicts.expect("they are listed").remove(0).without
    };
    assert_eq!(told(), None);
    // No driver shows this card, so the engine takes the CPU and says why.
    let options = LoadOptions {
        device: DeviceRequest::Gpu(Some(gpu.id.clone())),
        ..LoadOptions::default()
    };
    let on_cpu = Engine::open(&model, &options, &mut |_| {}).expect("it opens");
    machine.gpus().loaded(&gpu, &on_cpu);
    assert!(told().is_some_and(|words| words.contains("The CPU is used")));
    let mut knowledge = machine.gpus().knowledge();
    let fingerprint = &on_cpu.summary().fingerprint;
    assert!(knowledge.entry(&Key::of(&gpu)).loaded(fingerprint, None));
    machine.gpus().remember(&knowledge);
    assert_eq!(told(), None);
}

#[test]
fn a_gpu_may_be_asked_for_by_its_place_on_the_bus() {
    let card = CARD.replace("0000:01:00.0", "00010203-0405-0607-0809-0a0b0c0d0e0f");
    let card = card.replace(r#""driver""#, r#""bus":"0000:01:00.0","driver""#);
    let machine = Machine::new(&[&card], &writes(50));
    for asked in [
        "gpu:0000:01:00.0",
        "gpu:00010203-0405-0607-0809-0a0b0c0d0e0f",
    ] {
        let gpu = machine.decide(asked).gpu.expect("it is taken");
        assert!(gpu.id.starts_with("00010203"));
    }
    no_gpu(&machine.decide("gpu:0000:02:00.0"), "0000:02:00.0");
}

#[test]
fn a_gpu_without_room_is_asked_again_another_time() {
    let machine = Machine::new(&[CARD], &faulty("there its memory is full", true));
    no_gpu(&machine.decide("auto"), "memory is full");
    machine.becomes(&format!("echo '[{CARD}]'"), &writes(50));
    assert!(machine.decide("auto").gpu.is_some());
}

#[test]
fn a_layer_that_crashes_while_gpus_are_listed_leaves_a_chat_on_the_cpu() {
    let machine = Machine::new(&[], ":");
    machine.becomes("kill -KILL $$", ":");
    let mut model = EngineModel::choosing(Some(machine.gpus()), machine.markers());
    let options = chat::LoadOptions {
        device: "gpu".into(),
        threads: Some(1),
        context_length: None,
        kv_type: chat::KvType::F16,
        own_templates: Vec::new(),
    };
    let info = model
        .open(&ModelChoice::DemoModel, &options, &mut |_| {})
        .expect("the demo model opens");
    assert_eq!(info.device.kind, chat::DeviceKind::Cpu);
    assert!(
        info.device.reason.contains("crashes"),
        "{}",
        info.device.reason
    );
}

#[test]
fn a_layer_that_crashes_is_told_from_a_driver_that_does() {
    let spared = "[ \"$VK_LOADER_LAYERS_DISABLE\" = '~implicit~' ] || kill -KILL $$";
    let machine = Machine::new(&[CARD], &format!("{spared}; {}", writes(50)));
    let decision = machine.decide("auto");
    no_gpu(&decision, "layer");
    no_gpu(&decision, "VK_LOADER_LAYERS_DISABLE=~implicit~");
    machine.becomes(&format!("{spared}; echo '[{CARD}]'"), ":");
    no_gpu(&machine.decide("gpu"), "layer");
}

#[test]
fn who_works_on_a_gpu_is_marked_and_what_it_fails_at_is_noted() {
    let machine = Machine::new(&[CARD], &writes(50));
    let gpus = machine.gpus();
    let mut gpu = machine.decide("auto").gpu;
    let mark = machine.markers().file(Work::GpuInUse);
    let model = demo_model::file().expect("the demo model is there");
    // It is on the CPU, as one that has left a GPU is.
    let on_cpu = engine::LoadOptions {
        device: DeviceRequest::Cpu,
        threads: Some(1),
        ..Default::default()
    };
    let mut engine = Engine::open(&model, &on_cpu, &mut |_| {}).expect("the demo model opens");
    for failed in [true, false] {
        let marked = watched(Some(&gpus), &mut gpu, &mut engine, |_| mark.exists());
        assert_eq!((marked, mark.exists()), (failed, false));
    }
    let knowledge = fs::read_to_string(machine.gpus().file()).expect("something is known");
    assert_eq!(knowledge.matches(&engine.device().reason).count(), 1);
}

#[test]
fn a_machine_without_a_gpu_says_so() {
    no_gpu(&Machine::new(&[], ":").decide("auto"), "No GPU");
    let refused = CARD.replace("null", "\"it is the processor playing a GPU\"");
    no_gpu(
        &Machine::new(&[&refused], ":").decide("gpu"),
        "playing a GPU",
    );
}

#[test]
fn after_a_death_over_a_gpu_the_cpu_answers_once_and_after_two_always() {
    let machine = Machine::new(&[CARD], &writes(50));
    let gpu = machine.decide("auto").gpu.expect("it is taken");
    let mark = machine.0.path().join("gpu-in-use-1");
    for always in [false, true] {
        let in_use = machine.gpus().begin(&gpu).expect("marked");
        // Of a process that lives, nothing is concluded.
        assert!(machine.decide("auto").gpu.is_some());
        drop(in_use);
        let key = serde_json::to_vec(&Key::of(&gpu)).expect("plain data");
        fs::write(&mark, key).expect("written");
        no_gpu(&machine.decide("auto"), "ended while");
        assert!(!mark.exists());
        assert_eq!(machine.decide("auto").gpu.is_none(), always);
    }
    no_gpu(&machine.decide("auto"), "failed 2 times");
    // Whoever asks for it to be checked anew gets a new beginning.
    let model = demo_model::file().expect("the demo model is there");
    let verdicts = machine.gpus().verdicts(&model, Some(1), true, &mut || {});
    assert!(verdicts.expect("listed")[0].usable);
    assert!(machine.decide("auto").gpu.is_some());
}

/// A model whose opening is at work on a GPU until the test lets go of it.
struct SlowModel {
    gpus: Gpus,
    gpu: Gpu,
    begun: Sender<()>,
    go: Receiver<()>,
    ended: Sender<bool>,
}

impl Generate for SlowModel {
    fn open(
        &mut self,
        _: &ModelChoice,
        _: &chat::LoadOptions,
        _: &mut dyn FnMut(Opening),
    ) -> Result<chat::ModelInfo, chat::Failure> {
        let mark = self.gpus.begin(&self.gpu);
        let _ = self.begun.send(());
        let _ = self.go.recv();
        drop(mark);
        // Whatever goes on after the end is not marked either.
        let _ = self.ended.send(self.gpus.begin(&self.gpu).is_some());
        Err(chat::Failure::new(chat::FailureCode::BadModel, "none"))
    }

    fn info(&self) -> Option<&chat::ModelInfo> {
        None
    }

    fn count(&mut self, _: &chat::Turn, _: &AtomicBool) -> Result<usize, chat::Failure> {
        unreachable!("no model is open")
    }

    fn generate(
        &mut self,
        _: &chat::Turn,
        _: &AtomicBool,
        _: &mut dyn FnMut(chat::Piece<'_>),
    ) -> Result<chat::Finish, chat::Failure> {
        unreachable!("no model is open")
    }
}

#[test]
fn closing_while_a_model_loads_on_a_gpu_is_no_crash() {
    let machine = Machine::new(&[CARD], &writes(50));
    let gpu = machine.decide("auto").gpu.expect("it is taken");
    let markers = machine.markers();
    let (begun, begins) = channel();
    let (go, wait) = channel();
    let (ended, ends) = channel();
    let model = SlowModel {
        gpus: Gpus {
            markers: markers.clone(),
            ..machine.gpus()
        },
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
    crate::app::close(&chat, &markers);
    assert!(!mark.exists());
    go.send(()).expect("it waits");
    assert!(!ends.recv().expect("it has ended"), "marked after the end");
    assert!(machine.decide("auto").gpu.is_some());
}

#[test]
fn crashes_are_forgotten_after_ten_good_answers_and_failures_are_not() {
    let machine = Machine::new(&[CARD], &writes(50));
    let gpu = machine.decide("auto").gpu.expect("it is taken");
    let crash = || {
        let key = serde_json::to_vec(&Key::of(&gpu)).expect("plain data");
        fs::write(machine.0.path().join("gpu-in-use-1"), key).expect("written");
        no_gpu(&machine.decide("auto"), "ended while");
    };
    crash();
    for _ in 0..10 {
        assert!(machine.decide("auto").gpu.is_some());
        machine.gpus().answered(&gpu);
    }
    crash();
    assert!(
        machine.decide("auto").gpu.is_some(),
        "the first is forgotten"
    );
    for _ in 0..9 {
        machine.gpus().answered(&gpu);
    }
    crash();
    no_gpu(&machine.decide("auto"), "failed 2 times");

    let machine = Machine::new(&[CARD], &writes(50));
    let gpu = machine.decide("auto").gpu.expect("it is taken");
    machine.gpus().failed(&gpu, "it is lost");
    for _ in 0..20 {
        machine.gpus().answered(&gpu);
    }
    machine.gpus().failed(&gpu, "it is lost again");
    no_gpu(&machine.decide("auto"), "it is lost again");
}
