//! The thread pool: workers spin briefly between two products of a layer, and sleep when nothing is generated.
//!
//! One job runs at a time. The caller is worker 0; the others wait on `epoch`. A job is split into many more tasks than
//! there are threads. Each worker begins with a queue of neighbouring tasks, so that it reads memory in one direction; a
//! worker with an empty queue steals half of another's (work stealing), so that a slow or busy core does fewer.

pub(crate) mod disjoint;
mod queue;

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use queue::WorkQueue;

/// Iterations of `spin_loop` before a worker sleeps: some 100 µs, longer than any pause inside a layer.
const SPINS: usize = 4_000;

type JobPtr = *const (dyn Fn(usize) + Sync);

struct PoolState {
    /// Incremented for every job.
    epoch: AtomicUsize,
    /// Workers that have not finished the current job.
    running: AtomicUsize,
    /// The queue of each worker.
    queues: Box<[WorkQueue]>,
    /// Set if a worker's part of the current job panicked.
    panicked: AtomicBool,
    stop: AtomicBool,
    job: Mutex<Option<SendJob>>,
    wake: Condvar,
    sleepers: AtomicUsize,
}

#[derive(Clone, Copy)]
struct SendJob(JobPtr);

// SAFETY: the pointee is `Sync`, and `Pool::on_all` returns only when every worker has finished with it, so that the
// pointee outlives every use.
unsafe impl Send for SendJob {}

/// A fixed set of threads that run one job together.
pub(crate) struct Pool {
    state: Arc<PoolState>,
    workers: Vec<JoinHandle<()>>,
    /// Serialises jobs of several callers.
    turn: Mutex<()>,
}

impl Pool {
    pub fn new(threads: usize) -> Self {
        let state = Arc::new(PoolState {
            epoch: AtomicUsize::new(0),
            running: AtomicUsize::new(0),
            queues: (0..threads.max(1)).map(|_| WorkQueue::default()).collect(),
            panicked: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            job: Mutex::new(None),
            wake: Condvar::new(),
            sleepers: AtomicUsize::new(0),
        });
        // If the system refuses a thread, the pool has fewer workers.
        let workers = (1..threads.max(1))
            .map_while(|worker| {
                let state = Arc::clone(&state);
                thread::Builder::new()
                    .name(format!("kernels-{worker}"))
                    .spawn(move || state.work(worker))
                    .ok()
            })
            .collect();
        Pool {
            state,
            workers,
            turn: Mutex::new(()),
        }
    }

    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Runs `task(worker, i)` for every `i < tasks`, each once; neighbouring tasks run on one worker unless another steals
    /// them.
    pub fn parallel_for(&self, tasks: usize, task: impl Fn(usize, usize) + Sync) {
        assert!(
            u32::try_from(tasks).is_ok(),
            "a job has fewer than 2³² tasks"
        );
        if tasks <= 1 || self.workers.is_empty() {
            for i in 0..tasks {
                task(0, i);
            }
            return;
        }
        self.on_all(tasks, &|worker| {
            while let Some(i) = self.state.next_task(worker) {
                task(worker, i);
            }
        });
    }

    fn on_all(&self, tasks: usize, job: &(dyn Fn(usize) + Sync)) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &*self.state;
        let threads = self.threads();
        for (worker, queue) in state.queues.iter().enumerate().take(threads) {
            queue.set(tasks * worker / threads..tasks * (worker + 1) / threads);
        }
        // Left set by a job in which the caller's own part panicked too: its unwinding skips the check below.
        state.panicked.store(false, Ordering::Relaxed);
        state.running.store(self.workers.len(), Ordering::Relaxed);
        {
            // SAFETY: only the lifetime changes. `WaitForWorkers` below waits for every worker, on return and on unwinding
            // alike, so that no worker uses the pointer after `job` is dropped.
            let job: JobPtr =
                unsafe { std::mem::transmute::<&(dyn Fn(usize) + Sync), JobPtr>(job) };
            let mut current = state.job.lock().unwrap_or_else(PoisonError::into_inner);
            *current = Some(SendJob(job));
            // Before the lock is released: see `next_epoch`.
            state.epoch.fetch_add(1, Ordering::SeqCst);
        }
        if state.sleepers.load(Ordering::SeqCst) > 0 {
            state.wake.notify_all();
        }
        let finish = WaitForWorkers(state);
        job(0);
        drop(finish);
        assert!(
            !state.panicked.swap(false, Ordering::Relaxed),
            "a kernel worker panicked"
        );
    }
}

/// Waits on drop until no worker runs the current job.
struct WaitForWorkers<'a>(&'a PoolState);

impl Drop for WaitForWorkers<'_> {
    fn drop(&mut self) {
        let mut spins = 0;
        while self.0.running.load(Ordering::Acquire) > 0 {
            spins += 1;
            if spins < SPINS {
                spin_loop()
            } else {
                thread::yield_now()
            }
        }
    }
}

impl PoolState {
    /// The next task of `worker`: the first of its queue, or of half of the longest queue.
    fn next_task(&self, worker: usize) -> Option<usize> {
        let own = &self.queues[worker];
        loop {
            if let Some(i) = own.pop_first() {
                return Some(i);
            }
            let longest = self.queues.iter().max_by_key(|queue| queue.left().len())?;
            if longest.left().is_empty() {
                return None;
            }
            // No other worker changes an empty queue.
            own.set(longest.steal_half());
        }
    }

    fn work(&self, worker: usize) {
        let mut seen = 0;
        loop {
            seen = self.next_epoch(seen);
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            let job = *self.job.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(SendJob(job)) = job {
                let run = || {
                    // SAFETY: `on_all` keeps the job alive until `running` is zero, and this worker counts itself down
                    // only afterwards.
                    unsafe { (*job)(worker) }
                };
                if std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err() {
                    self.panicked.store(true, Ordering::Relaxed);
                }
            }
            self.running.fetch_sub(1, Ordering::Release);
        }
    }

    /// Waits until the epoch is no longer `seen`, and returns it.
    fn next_epoch(&self, seen: usize) -> usize {
        for _ in 0..SPINS {
            let now = self.epoch.load(Ordering::Acquire);
            if now != seen {
                return now;
            }
            spin_loop();
        }
        let mut job = self.job.lock().unwrap_or_else(PoisonError::into_inner);
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let now = loop {
            // The epoch changes under this lock, so that no wake-up is lost between the check and the wait.
            let now = self.epoch.load(Ordering::SeqCst);
            if now != seen {
                break now;
            }
            job = self.wake.wait(job).unwrap_or_else(PoisonError::into_inner);
        };
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        now
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.state.stop.store(true, Ordering::Relaxed);
        {
            let _job = self
                .state
                .job
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            self.state.epoch.fetch_add(1, Ordering::SeqCst);
        }
        self.state.wake.notify_all();
        for worker in self.workers.drain(..) {
            // A worker catches its panics, so that joining cannot fail.
            drop(worker.join());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without the lock around the change of the epoch, one wake-up in some 300,000 was lost.
    const JOBS: usize = 100_000;

    #[test]
    fn every_task_runs_once_at_any_thread_count() {
        for threads in [1, 2, 3, 8] {
            let pool = Pool::new(threads);
            for tasks in [0, 1, 2, 7, 1000] {
                let runs: Vec<AtomicUsize> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
                pool.parallel_for(tasks, |worker, i| {
                    assert!(worker < threads);
                    runs[i].fetch_add(1, Ordering::Relaxed);
                });
                assert!(runs.iter().all(|r| r.load(Ordering::Relaxed) == 1));
            }
        }
    }

    #[test]
    fn a_worker_runs_neighbouring_tasks() {
        let pool = Pool::new(2);
        let workers: Vec<AtomicUsize> = (0..2000).map(|_| AtomicUsize::new(9)).collect();
        pool.parallel_for(workers.len(), |worker, i| {
            let start = std::time::Instant::now();
            while start.elapsed() < std::time::Duration::from_micros(10) {}
            workers[i].store(worker, Ordering::Relaxed);
        });
        let changes = workers
            .windows(2)
            .filter(|pair| pair[0].load(Ordering::Relaxed) != pair[1].load(Ordering::Relaxed));
        // A queue is halved some ten times at most before it is empty.
        assert!(changes.count() < 50);
    }

    #[test]
    fn other_workers_steal_the_tasks_of_a_blocked_worker() {
        let pool = Pool::new(3);
        let runs: Vec<AtomicUsize> = (0..3).map(|_| AtomicUsize::new(0)).collect();
        let done = AtomicUsize::new(0);
        let tasks = 300;
        pool.parallel_for(tasks, |worker, _| {
            runs[worker].fetch_add(1, Ordering::Relaxed);
            // Worker 0 stays in its first task until all others are done.
            while worker == 0 && done.load(Ordering::Relaxed) < tasks - 1 {
                thread::yield_now();
            }
            done.fetch_add(1, Ordering::Relaxed);
        });
        assert!(runs[0].load(Ordering::Relaxed) <= 1);
    }

    #[test]
    fn sleeping_workers_wake_for_the_next_job() {
        let pool = Pool::new(3);
        for _ in 0..5 {
            thread::sleep(std::time::Duration::from_millis(20));
            let sum = AtomicUsize::new(0);
            pool.parallel_for(100, |_, i| {
                sum.fetch_add(i, Ordering::Relaxed);
            });
            assert_eq!(sum.into_inner(), 4950);
        }
    }

    #[test]
    fn a_worker_that_is_about_to_sleep_is_woken() {
        let (done, ended) = std::sync::mpsc::channel();
        thread::spawn(move || {
            let pool = Pool::new(2);
            for job in 0..JOBS {
                // The next job comes shortly before or after the worker stops spinning.
                for _ in 0..SPINS / 2 + job % SPINS {
                    spin_loop();
                }
                pool.parallel_for(2, |_, _| {});
            }
            drop(pool);
            done.send(()).expect("the test waits");
        });
        let ended = ended.recv_timeout(std::time::Duration::from_secs(300));
        assert!(ended.is_ok(), "a worker sleeps while a job waits for it");
    }

    #[test]
    fn a_panic_does_not_fail_the_next_job() {
        let pool = Pool::new(2);
        // Both parts panic: the caller's unwinds, and the flag of the worker's stays set.
        let both = std::sync::Barrier::new(2);
        let boom = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            pool.on_all(2, &|worker| {
                both.wait();
                panic!("part {worker}");
            });
        }));
        assert!(boom.is_err());
        let sum = AtomicUsize::new(0);
        pool.parallel_for(10, |_, i| {
            sum.fetch_add(i, Ordering::Relaxed);
        });
        assert_eq!(sum.into_inner(), 45);
    }

    #[test]
    fn a_panic_in_a_task_reaches_the_caller_and_the_pool_stays_usable() {
        let pool = Pool::new(2);
        let boom = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            pool.parallel_for(64, |_, i| assert!(i != 40, "boom"));
        }));
        assert!(boom.is_err());
        let sum = AtomicUsize::new(0);
        pool.parallel_for(10, |_, i| {
            sum.fetch_add(i, Ordering::Relaxed);
        });
        assert_eq!(sum.into_inner(), 45);
    }
}
