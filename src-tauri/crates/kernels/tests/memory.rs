//! Out of memory: every allocation whose size comes from a model's shape or a batch is fallible. The tests use an allocator
//! with a limit, and are a binary of their own because the limit is global.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use kernels::{BlockType, Cpu, CpuLevel, KvLayer, KvType, Matrix, OutOfMemory, PackError};

/// The largest allocation that succeeds, in bytes.
static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

struct Limited;

#[global_allocator]
static ALLOCATOR: Limited = Limited;

// SAFETY: forwards to the system's allocator, or returns null, which `GlobalAlloc` allows.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() > LIMIT.load(Ordering::Relaxed) {
            return ptr::null_mut();
        }
        // SAFETY: `layout` has a size above zero, by the caller's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: `alloc` has returned `start` from the system's allocator for `layout`.
        unsafe { System.dealloc(start, layout) }
    }
}

/// The first limit: allocations that no model's shape determines, such as a list of row blocks, are smaller.
const SMALL: usize = 32 << 10;

/// Runs `work` with doubling limits until it succeeds; returns the number of failures.
fn failures(mut work: impl FnMut() -> Result<(), OutOfMemory>) -> usize {
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

/// New executors, without scratch, of every kind on this machine.
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
fn every_failed_allocation_is_an_error() {
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
                let count = failures(|| cpu.feed_forward(&x, m, [&gate, &up, &down], &mut y));
                assert!(m == 1 || count > 0, "{} allocates nothing", name(&cpu));
                // The scratch is allocated now.
                LIMIT.store(SMALL, Ordering::Relaxed);
                let again = cpu.feed_forward(&x, m, [&gate, &up, &down], &mut y);
                LIMIT.store(usize::MAX, Ordering::Relaxed);
                assert_eq!(again, Ok(()), "{} allocates again", name(&cpu));
            }
            for cpu in executors() {
                let [q, k, v] = [COLS, 32, 32].map(|rows| packed(&cpu, ty, rows, COLS));
                let [mut yk, mut yv] = [(); 2].map(|()| vec![0.0; m * 32]);
                failures(|| cpu.qkv(&x, m, [&q, &k, &v], [&mut y, &mut yk, &mut yv]));
            }
            for cpu in executors() {
                let w = packed(&cpu, ty, COLS, HIDDEN);
                failures(|| cpu.product_add(&wide, m, &w, &mut y));
            }
            for cpu in executors() {
                let w = packed(&cpu, ty, HIDDEN, COLS);
                failures(|| cpu.product(&x, m, &w, &mut wide));
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
                let count = failures(|| cpu.attention(&q, m, heads, &kv, past, &mut out));
                assert!(count > 0, "{} allocates nothing", name(&cpu));
            }
        }
    }
}

fn cache_and_weights() {
    for ty in [KvType::F32, KvType::F16, KvType::Q8_0] {
        let mut kv = KvLayer::new(ty, 8, 64);
        assert!(failures(|| kv.reserve(600)) > 0);
        assert_eq!(kv.bytes() as u64, KvLayer::bytes_for(ty, 8, 64, 600));
    }
    let cpu = Cpu::new(2, CpuLevel::best());
    let bytes = vec![1; BlockType::Q8_0.row_bytes(4096).expect("whole blocks") * 4096];
    let count = failures(|| match cpu.pack(BlockType::Q8_0, 4096, 4096, &bytes) {
        Err(PackError::Memory(error)) => Err(error),
        other => {
            other.expect("the shape fits");
            Ok(())
        }
    });
    assert!(count > 0);
}
