//! Whatever a GPU, its driver or a layer above it does, the model runs on the CPU, with a reason. The children are
//! scripts.

#![cfg(unix)]

use std::fs;

use tempfile::TempDir;

use super::*;

mod opened;

const CARD: &str = r#"{"name":"Card","id":"0000:01:00.0","driver":"radv 1","api":"Vulkan","kind":"discrete","refused":null}"#;
const TWIN: &str = r#"{"name":"Card","id":"0000:02:00.0","driver":"radv 1","api":"Vulkan","kind":"discrete","refused":null}"#;

/// Output of a check of a GPU that decodes `rate` tokens/s where the CPU decodes 10.
fn writes(rate: u32) -> String {
    let rates = format!(
        r#"{{"gpu":{{"prefill":100.0,"decode":{rate}}},"cpu":{{"prefill":100.0,"decode":10}}}}"#
    );
    format!(r#"echo '{{"steps":[],"fault":null,"rates":{rates}}}'"#)
}

fn faulty(fault: &Fault) -> String {
    let fault = serde_json::to_string(fault).expect("plain data");
    format!(r#"echo '{{"steps":[],"fault":{fault},"rates":null}}'"#)
}

/// A machine with these GPUs, whose checks run a line of shell.
struct Machine(TempDir);

impl Machine {
    fn new(gpus: &[&str], check: &str) -> Self {
        let machine = Self(tempfile::tempdir().expect("made"));
        machine.becomes(&format!("echo '[{}]'", gpus.join(",")), check);
        machine
    }

    fn becomes(&self, list: &str, check: &str) {
        let script = format!(
            "if [ $# = 0 ]; then {list}; else echo $2 >> '{}'; {check}; fi\n",
            self.0.path().join("checked").display()
        );
        fs::write(self.script(), script).expect("written");
    }

    fn script(&self) -> PathBuf {
        self.0.path().join("child.sh")
    }

    /// Returns the devices as the app finds them when it starts.
    fn devices(&self) -> Devices {
        Devices {
            small_model: 0,
            ..Devices::with_program(
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

    fn choose(&self, request: &str) -> Choice {
        self.choose_counting(request, &mut || {})
    }

    fn choose_counting(&self, request: &str, on_check: &mut dyn FnMut()) -> Choice {
        let request = request.parse().expect("a device");
        self.devices().choose(&request, &model(), Some(1), on_check)
    }

    /// Ids of the devices that were checked.
    fn checked(&self) -> Vec<String> {
        let ids = fs::read_to_string(self.0.path().join("checked")).unwrap_or_default();
        ids.lines().map(str::to_owned).collect()
    }
}

fn model() -> ModelFile {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    ModelFile::open(&folder.join("../engine/tests/fixtures/tiny-q4_k_m.gguf")).expect("a model")
}

#[track_caller]
fn no_gpu(choice: &Choice, is_expected: impl Fn(&Reason) -> bool) {
    assert_eq!((&choice.gpu, &choice.placement), (&None, &Placement::Cpu));
    assert!(is_expected(&choice.reason), "{:?}", choice.reason);
}

/// Returns the fault of the rejected GPU.
fn fault(reason: &Reason) -> Option<&Fault> {
    match reason {
        Reason::Rejected {
            why: Rejection::Faulty(fault),
            ..
        } => Some(fault),
        _ => None,
    }
}

/// Predicate for the expected fault.
type IsExpected<'a> = &'a dyn Fn(&Fault) -> bool;

fn crashes(reason: &Reason) -> bool {
    matches!(fault(reason), Some(Fault::Crashed(_)))
}

fn is_repeated(reason: &Reason) -> bool {
    matches!(fault(reason), Some(Fault::Repeated { times: 2, .. }))
}

fn uses_matrices(choice: &Choice) -> bool {
    matches!(&choice.placement, Placement::Gpu(gpu) if gpu.matrices)
}

#[test]
fn a_gpu_measured_faster_is_used_and_checked_once() {
    let machine = Machine::new(&[CARD], &writes(50));
    for expected in [1, 0] {
        let mut checks = 0;
        let choice = machine.choose_counting("auto", &mut || checks += 1);
        assert_eq!(checks, expected);
        let Placement::Gpu(gpu) = &choice.placement else {
            panic!("{:?}", choice.reason);
        };
        assert_eq!(gpu.id.as_deref(), Some("0000:01:00.0"));
        assert!(matches!(choice.reason, Reason::GpuFaster(_)));
    }
    assert_eq!(machine.checked().len(), 1);
    // Another CPU to beat is another measurement.
    let devices = machine.devices();
    devices.choose(&DeviceRequest::Auto, &model(), Some(2), &mut || {});
    assert_eq!(machine.checked().len(), 2);
}

#[test]
fn a_small_model_runs_on_the_cpu_unless_a_gpu_is_requested() {
    let machine = Machine::new(&[CARD], &writes(50));
    let devices = Devices {
        small_model: SMALL_MODEL,
        ..machine.devices()
    };
    let choice = devices.choose(&DeviceRequest::Auto, &model(), Some(1), &mut || {});
    no_gpu(&choice, |reason| *reason == Reason::SmallModel);
    assert_eq!(machine.checked(), [""; 0]);
    let choice = devices.choose(&DeviceRequest::Gpu(None), &model(), Some(1), &mut || {});
    assert!(choice.gpu.is_some());
}

#[test]
fn a_slower_gpu_is_used_only_on_request() {
    let machine = Machine::new(&[CARD], &writes(5));
    no_gpu(&machine.choose("auto"), |reason| {
        matches!(
            reason,
            Reason::Rejected {
                why: Rejection::Slower(_),
                ..
            }
        )
    });
    let asked = machine.choose("gpu");
    assert!(asked.gpu.is_some() && matches!(asked.reason, Reason::GpuRequested(Some(_))));
    no_gpu(&machine.choose("cpu"), |reason| {
        *reason == Reason::CpuChosen
    });
}

#[test]
fn cooperative_matrices_are_used_if_correct_and_faster() {
    for (found, used) in [
        (r#"{"fault":null,"speedup":2.5}"#, true),
        (r#"{"fault":null,"speedup":0.9}"#, false),
        (r#"{"fault":{"driver":"it lies"},"speedup":null}"#, false),
        ("null", false),
    ] {
        let check = writes(50).replace(r#""rates""#, &format!(r#""matrices":{found},"rates""#));
        let choice = Machine::new(&[CARD], &check).choose("auto");
        assert!(choice.gpu.is_some());
        assert_eq!(uses_matrices(&choice), used, "{found}");
    }
}

#[test]
fn a_gpu_that_crashes_with_cooperative_matrices_is_used_without_them() {
    let with = "case $* in *--without-matrices*) ;; *) kill -KILL $$ ;; esac";
    let machine = Machine::new(&[CARD], &format!("{with}; {}", writes(50)));
    for _ in 0..2 {
        let choice = machine.choose("auto");
        assert!(choice.gpu.is_some() && !uses_matrices(&choice));
    }
    // With them, without layers, without them; and that is remembered.
    assert_eq!(machine.checked().len(), 3);
    let verdicts = machine
        .devices()
        .verdicts(&model(), Some(1), false, &mut || {});
    let check = verdicts.expect("they are listed").remove(0).check;
    let matrices = check
        .and_then(|check| check.matrices)
        .expect("they were tried");
    assert!(matches!(matrices.fault, Some(Fault::Crashed(_))));
}

#[test]
fn a_gpu_that_hangs_with_cooperative_matrices_is_used_without_them() {
    let with = "case $* in *--without-matrices*) ;; *) exec sleep 60 ;; esac";
    let machine = Machine::new(&[CARD], &format!("{with}; {}", writes(50)));
    let mut devices = machine.devices();
    devices.check.timeout = Duration::from_secs(5);
    let choice = devices.choose(&DeviceRequest::Auto, &model(), Some(1), &mut || {});
    assert!(choice.gpu.is_some() && !uses_matrices(&choice));
    assert_eq!(machine.checked().len(), 2);
}

#[test]
fn of_two_gpus_with_one_name_the_working_one_is_used() {
    let breaks = format!("[ $2 = 0000:01:00.0 ] && kill -KILL $$; {}", writes(50));
    let machine = Machine::new(&[CARD, TWIN], &breaks);
    let choice = machine.choose("auto");
    assert_eq!(
        choice.gpu.map(|gpu| gpu.id).as_deref(),
        Some("0000:02:00.0")
    );
    no_gpu(&machine.choose("gpu:0000:01:00.0"), crashes);
    no_gpu(&machine.choose("gpu:0000:03:00.0"), |reason| {
        *reason == Reason::UnknownGpu("0000:03:00.0".to_owned())
    });
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
fn a_gpu_that_is_wrong_crashes_or_times_out_is_disabled_until_its_driver_changes() {
    let wrong = Fault::Wrong {
        step: "logits".to_owned(),
        error: 0.5,
    };
    let is_wrong = |fault: &Fault| matches!(fault, Fault::Wrong { .. });
    let is_crash = |fault: &Fault| matches!(fault, Fault::Crashed(_));
    let is_timeout = |fault: &Fault| matches!(fault, Fault::TimedOut(1));
    let is_unreadable = |fault: &Fault| matches!(fault, Fault::Unreadable(_));
    // The last of each: how often it is checked, with its repetitions without layers and without matrices.
    let cases: [(String, IsExpected<'_>, usize); 4] = [
        (faulty(&wrong), &is_wrong, 1),
        (
            "echo a layer fails >&2; kill -KILL $$".to_owned(),
            &is_crash,
            3,
        ),
        ("exec sleep 600".to_owned(), &is_timeout, 2),
        ("echo nonsense".to_owned(), &is_unreadable, 1),
    ];
    for (check, is_expected, checks) in cases {
        let machine = Machine::new(&[CARD], &check);
        let mut devices = machine.devices();
        if check.contains("sleep") {
            devices.check.timeout = Duration::from_secs(1);
        }
        let is_expected = |reason: &Reason| fault(reason).is_some_and(is_expected);
        let first = devices.choose(&DeviceRequest::Auto, &model(), Some(1), &mut || {});
        no_gpu(&first, is_expected);
        let later = machine.choose("gpu");
        no_gpu(&later, is_expected);
        let report = later.report.expect("a report");
        assert!(
            report.contains("radv 1") && report.contains("0000:01:00.0"),
            "{report}"
        );
        assert_eq!(report.contains("a layer fails"), checks == 3);
        assert_eq!(machine.checked().len(), checks);

        let mended = CARD.replace("radv 1", "radv 2");
        machine.becomes(&format!("echo '[{mended}]'"), &writes(50));
        assert!(machine.choose("auto").gpu.is_some());
    }
}

#[test]
fn on_automatic_a_gpu_needs_the_layers_with_which_it_is_faster() {
    let machine = Machine::new(&[CARD], &writes(12));
    let min_layers = |request| match machine.choose(request).placement {
        Placement::Gpu(gpu) => gpu.min_layers,
        Placement::Cpu => panic!("it is used"),
    };
    assert_eq!((min_layers("auto"), min_layers("gpu")), (4, 1));
}

#[test]
fn the_reason_of_a_failed_load_is_cached_until_a_load_succeeds() {
    let machine = Machine::new(&[CARD], &writes(50));
    let gpu = machine.choose("auto").gpu.expect("it is taken");
    let last_load = || {
        let verdicts = machine
            .devices()
            .verdicts(&model(), Some(1), false, &mut || {});
        verdicts.expect("they are listed").remove(0).last_load
    };
    assert_eq!(last_load(), None);
    // No driver lists this card, so the model is opened on the CPU.
    let opened = open(
        Some(&machine.devices()),
        &model(),
        &DeviceRequest::Auto,
        &LoadOptions::default(),
        &mut |_| {},
    );
    let opened = opened.expect("it opens on the CPU");
    let reason = &opened.explanation().reason;
    assert!(matches!(reason, Reason::NotLoaded(_)), "{reason:?}");
    assert!(!opened.engine.device().on_gpu);
    assert_eq!(last_load(), Some(reason.to_string()));
    machine.devices().record_load(&gpu, &model(), None);
    assert_eq!(last_load(), None);
}

#[test]
fn a_gpu_is_selected_by_uuid_or_pci_address() {
    let card = CARD.replace("0000:01:00.0", "00010203-0405-0607-0809-0a0b0c0d0e0f");
    let card = card.replace(r#""driver""#, r#""bus":"0000:01:00.0","driver""#);
    let machine = Machine::new(&[&card], &writes(50));
    for asked in [
        "gpu:0000:01:00.0",
        "gpu:00010203-0405-0607-0809-0a0b0c0d0e0f",
    ] {
        let gpu = machine.choose(asked).gpu.expect("it is taken");
        assert!(gpu.id.starts_with("00010203"));
    }
    no_gpu(&machine.choose("gpu:0000:02:00.0"), |reason| {
        *reason == Reason::UnknownGpu("0000:02:00.0".to_owned())
    });
}

#[test]
fn out_of_memory_in_a_check_is_not_cached() {
    let full = Fault::OutOfMemory("its memory is full".to_owned());
    let machine = Machine::new(&[CARD], &faulty(&full));
    no_gpu(&machine.choose("auto"), |reason| {
        fault(reason) == Some(&full)
    });
    machine.becomes(&format!("echo '[{CARD}]'"), &writes(50));
    assert!(machine.choose("auto").gpu.is_some());
}

#[test]
fn an_interrupted_check_is_not_cached() {
    let machine = Machine::new(&[CARD], "kill -INT $$");
    let interrupted = |reason: &Reason| fault(reason) == Some(&Fault::Interrupted);
    no_gpu(&machine.choose("auto"), interrupted);
    machine.becomes(&format!("echo '[{CARD}]'"), &writes(50));
    assert!(machine.choose("auto").gpu.is_some());
}

#[test]
fn after_a_crash_while_listing_gpus_the_model_runs_on_the_cpu() {
    let machine = Machine::new(&[], ":");
    machine.becomes("kill -KILL $$", ":");
    let opened = open(
        Some(&machine.devices()),
        &model(),
        &DeviceRequest::Gpu(None),
        &LoadOptions::default(),
        &mut |_| {},
    );
    let opened = opened.expect("it opens");
    assert!(!opened.engine.device().on_gpu);
    let reason = &opened.explanation().reason;
    assert!(
        matches!(reason, Reason::NotListed(Fault::Crashed(_))),
        "{reason:?}"
    );
}

#[test]
fn a_crash_of_a_vulkan_layer_is_distinguished_from_one_of_the_driver() {
    let spared = "[ \"$VK_LOADER_LAYERS_DISABLE\" = '~implicit~' ] || kill -KILL $$";
    let machine = Machine::new(&[CARD], &format!("{spared}; {}", writes(50)));
    let choice = machine.choose("auto");
    no_gpu(&choice, |reason| fault(reason) == Some(&Fault::Layer));
    let sentence = choice.reason.to_string();
    assert!(
        sentence.contains("VK_LOADER_LAYERS_DISABLE=~implicit~"),
        "{sentence}"
    );
    machine.becomes(&format!("{spared}; echo '[{CARD}]'"), ":");
    no_gpu(&machine.choose("gpu"), |reason| {
        *reason == Reason::NotListed(Fault::Layer)
    });
}

#[test]
fn without_a_usable_gpu_the_reason_says_so() {
    no_gpu(&Machine::new(&[], ":").choose("auto"), |reason| {
        *reason == Reason::NoGpu
    });
    let refused = CARD.replace("null", "\"it is software Vulkan\"");
    no_gpu(&Machine::new(&[&refused], ":").choose("gpu"), |reason| {
        matches!(
            reason,
            Reason::Rejected {
                why: Rejection::Refused(_),
                ..
            }
        )
    });
}

#[test]
fn a_crash_disables_the_gpu_for_one_run_and_two_crashes_for_good() {
    let machine = Machine::new(&[CARD], &writes(50));
    let gpu = machine.choose("auto").gpu.expect("it is taken");
    let mark = machine.0.path().join("gpu-in-use-1");
    let crashed = |reason: &Reason| *reason == Reason::CrashedLastRun;
    for always in [false, true] {
        let in_use = machine.devices().begin(&gpu).expect("marked");
        // A running process does not count as a crash.
        assert!(machine.choose("auto").gpu.is_some());
        drop(in_use);
        let key = serde_json::to_vec(&GpuKey::of(&gpu)).expect("plain data");
        fs::write(&mark, key).expect("written");
        no_gpu(&machine.choose("auto"), crashed);
        assert!(!mark.exists());
        assert_eq!(machine.choose("auto").gpu.is_none(), always);
    }
    no_gpu(&machine.choose("auto"), is_repeated);
    // A repeated check on request clears the record.
    let verdicts = machine
        .devices()
        .verdicts(&model(), Some(1), true, &mut || {});
    assert!(verdicts.expect("listed")[0].is_usable());
    assert!(machine.choose("auto").gpu.is_some());
}

#[test]
fn ten_successful_answers_clear_crashes_but_not_failures() {
    let machine = Machine::new(&[CARD], &writes(50));
    let gpu = machine.choose("auto").gpu.expect("it is taken");
    let crash = || {
        let key = serde_json::to_vec(&GpuKey::of(&gpu)).expect("plain data");
        fs::write(machine.0.path().join("gpu-in-use-1"), key).expect("written");
        no_gpu(&machine.choose("auto"), |reason| {
            *reason == Reason::CrashedLastRun
        });
    };
    crash();
    for _ in 0..10 {
        assert!(machine.choose("auto").gpu.is_some());
        machine.devices().record_answer(&gpu);
    }
    crash();
    assert!(
        machine.choose("auto").gpu.is_some(),
        "the first is forgotten"
    );
    for _ in 0..9 {
        machine.devices().record_answer(&gpu);
    }
    crash();
    no_gpu(&machine.choose("auto"), is_repeated);

    let machine = Machine::new(&[CARD], &writes(50));
    let gpu = machine.choose("auto").gpu.expect("it is taken");
    machine.devices().record_failure(&gpu, "it is lost");
    for _ in 0..20 {
        machine.devices().record_answer(&gpu);
    }
    machine.devices().record_failure(&gpu, "it is lost again");
    no_gpu(&machine.choose("auto"), |reason| match fault(reason) {
        Some(Fault::Repeated { last, .. }) => {
            **last == Fault::Driver("it is lost again".to_owned())
        }
        _ => false,
    });
}
