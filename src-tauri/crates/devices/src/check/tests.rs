//! A device that computes correctly passes the check; a faulty one fails with its fault.

use std::path::Path;

use super::*;
use testing::faulty_gpu::{Faulty, InjectedFault, device};

/// Predicate for the expected fault.
type IsExpected<'a> = &'a dyn Fn(&Fault) -> bool;

fn request() -> CheckRequest {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    CheckRequest {
        device: None,
        model: folder.join("../engine/tests/fixtures/tiny-q4_k_m.gguf"),
        bundled_model: None,
        threads: Some(2),
        software: true,
        matrices: true,
    }
}

#[test]
fn a_correct_gpu_passes_and_is_measured() {
    let Some(exec) = device() else { return };
    let found = check(exec, &request()).expect("the fixture is good");
    assert_eq!(found.fault, None, "{:#?}", found.steps);
    let Rates { gpu, cpu } = found.rates.expect("it was measured");
    for rate in [gpu.prefill, gpu.decode, cpu.prefill, cpu.decode] {
        assert!(rate > 0.0, "{rate}");
    }
}

#[test]
fn a_gpu_that_is_wrong_fails_or_is_out_of_memory_does_not_pass() {
    let Some(exec) = device() else { return };
    let nan = |fault: &Fault| matches!(fault, Fault::Nan { .. });
    let wrong = |fault: &Fault| matches!(fault, Fault::Wrong { .. });
    let driver = |fault: &Fault| matches!(fault, Fault::Driver(_));
    let full = |fault: &Fault| matches!(fault, Fault::OutOfMemory(_));
    let cases: [(_, _, IsExpected<'_>); 6] = [
        // From the beginning, and only after the products, in the layers.
        (InjectedFault::SkipsWork, 1, &nan),
        (InjectedFault::SkipsWork, 30, &wrong),
        (InjectedFault::Nan, 1, &nan),
        (
            InjectedFault::Fails(GpuError::Lost("gone".into())),
            30,
            &driver,
        ),
        (InjectedFault::Fails(GpuError::TimedOut(10)), 1, &driver),
        (InjectedFault::Small(1 << 20), 1, &full),
    ];
    for (fault, from, is_expected) in cases {
        let faulty = Faulty::new(exec.clone(), from, fault.clone());
        let found = check(faulty, &request()).expect("the fixture is good");
        assert!(
            found.fault.as_ref().is_some_and(is_expected),
            "{fault:?} from {from}: {:?}",
            found.fault
        );
        assert_eq!(found.rates, None);
    }
}

#[test]
fn a_gpu_with_faulty_cooperative_matrices_is_used_without_them() {
    let Some(exec) = device() else { return };
    let good = || Faulty::new(exec.clone(), 0, InjectedFault::Small(u64::MAX));
    let refuses = || Err(GpuError::Refused("not these".to_owned()));
    let driver = |fault: &Fault| matches!(fault, Fault::Driver(_));
    let wrong = |fault: &Fault| matches!(fault, Fault::Wrong { step, .. } | Fault::Nan { step } if step.ends_with("in matrices"));
    let cases: [(_, IsExpected<'_>); 3] = [
        (Some(InjectedFault::NoMatrices), &driver),
        (Some(InjectedFault::WrongMatrices), &wrong),
        // It does not even open with them.
        (None, &driver),
    ];
    for (fault, is_expected) in cases {
        let open = |matrices: bool| match &fault {
            _ if !matrices => Ok(good()),
            Some(fault) => Ok(Faulty::new(exec.clone(), 0, fault.clone())),
            None => refuses(),
        };
        let found = check_opened(&request(), &open).expect("the fixture is good");
        assert_eq!(found.fault, None, "{:#?}", found.steps);
        assert!(found.rates.is_some() && !found.uses_matrices());
        let fault = found.matrices.and_then(|it| it.fault);
        assert!(fault.as_ref().is_some_and(is_expected), "{fault:?}");
    }
}
