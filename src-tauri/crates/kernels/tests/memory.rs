//! What the kernels do where the system has no memory left: every allocation whose size comes from a model's shape or a
//! batch is an error. With an allocator that refuses more than a limit; in a binary of its own, because the limit is
//! everybody's.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use kernels::{BlockType, Cpu, CpuLevel, KvLayer, KvType, Matrix, OutOfMemory, PackError};

/// The most bytes that are given at once.
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

struct Limited;

#[global_allocator]
static ALLOCATOR: Limited = Limited;

// SAFETY: the system's allocator, but for what it refuses.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() > LIMIT.load(Ordering::Relaxed) {
            return ptr::null_mut();
        }
        // SAFETY: passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: passed on.
        unsafe { System.dealloc(start, layout) }
    }
}

/// Where a limit begins: what is not sized by a model, such as a list of strips, is smaller.
const SMALL: usize = 32 << 10;

/// Runs `work` with one limit after the other, each twice that before, until it has memory enough. Gives how often it had
/// not.
fn refused(mut work: impl FnMut() -> Result<(), OutOfMemory>) -> usize {
    let mut limit = SMALL;
    let mut times = 0;
    loop {
        LIMIT.store(limit, Ordering::Relaxed);
        let done = work();
        LIMIT.store(usize::MAX, Ordering::Relaxed);
        match done {
            Ok(()) => return times,
            Err(error) => assert!(error.bytes > limit, "{error:?} below {limit}"),
        }
        times += 1;
        limit *= 2;
    }
}

fn packed(cpu: &Cpu, ty: BlockType, rows: usize, cols: usize) -> Matrix {
    let bytes = ty.row_bytes(cols).expect("whole blocks") * rows;
    cpu.pack(ty, rows, cols, &vec![1; bytes])
        .expect("the shape fits")
}

/// Fresh executors, without scratch, of every kind that this machine has.
fn executors() -> Vec<Cpu> {
    let levels = CpuLevel::available().into_iter();
    let levels = levels.flat_map(|level| [1, 3].map(|threads| Cpu::new(threads, level)));
    levels.chain([Cpu::exact(2)]).collect()
}

fn name(cpu: &Cpu) -> String {
    let exact = if cpu.is_exact() { ", exact" } else { "" };
    format!("{} × {}{exact}", cpu.level(), cpu.threads())
}

#[test]
fn what_does_not_fit_is_an_error_wherever_it_is_asked_for() {
    products();
    attention();
    cache_and_weights();
}

fn products() {
    const COLS: usize = 2048;
    const HIDDEN: usize = 4096;
    for ty in [BlockType::Q4K, BlockType::Q8_0, BlockType::F16] {
        for m in [1, 8, 40] {
            let (x, mut y) = (vec![0.1; m * COLS], vec![0.0; m * COLS]);
            let mut wide = vec![0.0; m * HIDDEN];
            for cpu in executors() {
                let [gate, up] = [(); 2].map(|()| packed(&cpu, ty, HIDDEN, COLS));
                let down = packed(&cpu, ty, COLS, HIDDEN);
                let times = refused(|| cpu.feed_forward(&x, m, [&gate, &up, &down], &mut y));
                assert!(m == 1 || times > 0, "{} takes no memory", name(&cpu));
                // Now the scratch is there.
                LIMIT.store(SMALL, Ordering::Relaxed);
                let again = cpu.feed_forward(&x, m, [&gate, &up, &down], &mut y);
                LIMIT.store(usize::MAX, Ordering::Relaxed);
                assert_eq!(again, Ok(()), "{} takes memory again", name(&cpu));
            }
            for cpu in executors() {
                let [q, k, v] = [COLS, 32, 32].map(|rows| packed(&cpu, ty, rows, COLS));
                let [mut yk, mut yv] = [(); 2].map(|()| vec![0.0; m * 32]);
                refused(|| cpu.qkv(&x, m, [&q, &k, &v], [&mut y, &mut yk, &mut yv]));
            }
            for cpu in executors() {
                let w = packed(&cpu, ty, COLS, HIDDEN);
                refused(|| cpu.product_add(&wide, m, &w, &mut y));
            }
            for cpu in executors() {
                let w = packed(&cpu, ty, HIDDEN, COLS);
                refused(|| cpu.product(&x, m, &w, &mut wide));
            }
        }
    }
}

fn attention() {
    let (kv_heads, dim, heads) = (2, 64, 32);
    for (past, m) in [(5_000, 1), (0, 40), (600, 64)] {
        for ty in [KvType::F16, KvType::Q8_0] {
            let mut kv = KvLayer::new(ty, kv_heads, dim);
            let x = vec![0.3; (past + m) * kv_heads * dim];
            kv.append(&x, &x, past + m);
            let q = vec![0.2; m * heads * dim];
            let mut out = vec![0.0; q.len()];
            for cpu in executors() {
                let times = refused(|| cpu.attention(&q, m, heads, &kv, past, &mut out));
                assert!(times > 0, "{} takes no memory", name(&cpu));
            }
        }
    }
}

fn cache_and_weights() {
    for ty in [KvType::F32, KvType::F16, KvType::Q8_0] {
        let mut kv = KvLayer::new(ty, 8, 64);
        assert!(refused(|| kv.reserve(600)) > 0);
        assert_eq!(kv.bytes() as u64, KvLayer::bytes_for(ty, 8, 64, 600));
    }
    let cpu = Cpu::new(2, CpuLevel::best());
    let bytes = vec![1; BlockType::Q8_0.row_bytes(4096).expect("whole blocks") * 4096];
    let times = refused(|| match cpu.pack(BlockType::Q8_0, 4096, 4096, &bytes) {
        Err(PackError::Memory(error)) => Err(error),
        other => {
            other.expect("the shape fits");
            Ok(())
        }
    });
    assert!(times > 0);
}
