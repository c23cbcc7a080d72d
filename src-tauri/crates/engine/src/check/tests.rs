//! A check lets a device that computes well pass, and says what is wrong with one that does not.

use std::path::Path;

use super::*;
use crate::faulty::{Fault, Faulty, device};

fn order() -> CheckOrder {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    CheckOrder {
        device: None,
        model: folder.join("tests/fixtures/tiny-q4_k_m.gguf"),
        demo_model: None,
        threads: Some(2),
        software: true,
        matrices: true,
    }
}

#[test]
fn a_gpu_that_computes_well_passes_and_is_measured() {
    let Some(exec) = device() else { return };
    let found = check(exec, &order()).expect("the fixture is good");
    assert_eq!(found.fault, None, "{:#?}", found.steps);
    let Rates { gpu, cpu } = found.rates.expect("it was measured");
    for rate in [gpu.prefill, gpu.decode, cpu.prefill, cpu.decode] {
        assert!(rate > 0.0, "{rate}");
    }
}

#[test]
fn a_gpu_that_lies_fails_or_is_too_small_does_not_pass() {
    let Some(exec) = device() else { return };
    // From the beginning, and only after the products, in the blocks.
    for (fault, from, words) in [
        (Fault::Forgets, 1, "is no number"),
        (Fault::Forgets, 30, "off"),
        (Fault::NoNumbers, 1, "is no number"),
        (Fault::Fails(Failure::Lost("gone".into())), 30, "gone"),
        (Fault::Fails(Failure::TimedOut(10)), 1, "not answered"),
        (Fault::Small(1 << 20), 1, "memory is full"),
    ] {
        let faulty = Faulty::new(exec.clone(), from, fault.clone());
        let found = check(faulty, &order()).expect("the fixture is good");
        let said = found.fault.unwrap_or_default();
        assert!(said.contains(words), "{fault:?} from {from}: {said}");
        assert_eq!(found.full, matches!(fault, Fault::Small(_)));
        assert_eq!(found.rates, None);
    }
}

#[test]
fn matrices_that_do_not_work_are_left_alone_and_the_gpu_is_used_without() {
    let Some(exec) = device() else { return };
    let good = || Faulty::new(exec.clone(), 0, Fault::Small(u64::MAX));
    let refuses = || Err(Failure::Refused("not these".to_owned()));
    for (fault, words) in [
        (Some(Fault::NoMatrices), "no cooperative matrices"),
        (Some(Fault::WrongMatrices), "in matrices"),
        // It does not even open with them.
        (None, "not these"),
    ] {
        let open = |matrices: bool| match &fault {
            _ if !matrices => Ok(good()),
            Some(fault) => Ok(Faulty::new(exec.clone(), 0, fault.clone())),
            None => refuses(),
        };
        let found = check_opened(&order(), &open).expect("the fixture is good");
        assert_eq!(found.fault, None, "{:#?}", found.steps);
        assert!(found.rates.is_some() && !found.uses_matrices());
        let said = found.matrices.and_then(|it| it.fault).unwrap_or_default();
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn the_gpu_is_worth_it_when_it_writes_faster_or_reads_much_faster() {
    let favour = |decode, prefill| {
        let cpu = Rate {
            prefill: 100.0,
            decode: 10.0,
        };
        let gpu = Rate { prefill, decode };
        Rates { gpu, cpu }.favour_gpu()
    };
    assert!(favour(12.0, 50.0) && favour(10.0, 200.0));
    assert!(!favour(11.0, 150.0) && !favour(9.9, 1000.0));
}

#[test]
fn the_less_of_a_model_is_on_the_gpu_the_less_it_is_worth() {
    let rate = |decode, prefill| Rate { decode, prefill };
    let rates = Rates {
        gpu: rate(40.0, 1000.0),
        cpu: rate(10.0, 100.0),
    };
    let half = rates.shared(0.5).gpu;
    assert!((half.decode - 16.0).abs() < 1e-9 && (half.prefill - 2000.0 / 11.0).abs() < 1e-9);
    assert!((rates.shared(1.0).gpu.decode - 40.0).abs() < 1e-9);
    // A token takes 100 ms on the CPU, and each tenth of it that is on the GPU saves 7.5.
    assert!(!rates.shared(0.1).favour_gpu() && rates.shared(0.2).favour_gpu());
}
