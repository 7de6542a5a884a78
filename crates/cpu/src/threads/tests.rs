use super::*;

/// Adds 1 to each item and to a count per thread; says the sum of the counts.
fn check(threads: usize, n_items: usize) {
    let pool = Pool::new(threads);
    let mut items = vec![0u32; n_items];
    let mut counts = vec![0usize; threads];
    for round in 1..=50 {
        pool.each(
            &mut items,
            &mut counts,
            &CancelToken::new(),
            |count, item| {
                *count += 1;
                *item += 1;
            },
        )
        .expect("no panic");
        assert!(
            items.iter().all(|i| *i == round),
            "{threads} threads, {n_items} items"
        );
    }
    assert_eq!(counts.iter().sum::<usize>(), 50 * n_items);
}

#[test]
fn every_item_is_visited_once_whatever_the_number_of_threads() {
    for threads in [1, 2, 3, 8] {
        for n_items in [0, 1, 2, 7, 1000] {
            check(threads, n_items);
        }
    }
}

#[test]
fn threads_that_went_to_sleep_wake_up() {
    let pool = Pool::new(3);
    for _ in 0..3 {
        std::thread::sleep(std::time::Duration::from_millis(30));
        let calls = AtomicUsize::new(0);
        pool.run(&|_| {
            calls.fetch_add(1, Ordering::Relaxed);
        })
        .expect("no panic");
        assert_eq!(calls.into_inner(), 3);
    }
}

#[test]
fn a_panic_on_any_thread_is_an_answer_and_the_pool_goes_on() {
    let pool = Pool::new(3);
    for bad in 0..3 {
        let answer = pool.run(&|thread| assert_ne!(thread, bad, "a panic that the test wants"));
        assert_eq!(answer, Err(TaskPanicked));
        assert_eq!(pool.run(&|_| ()), Ok(()));
    }
    let mut one = [()];
    let answer = pool.each(&mut one, &mut [(); 3], &CancelToken::new(), |(), ()| {
        panic!("a panic that the test wants")
    });
    assert_eq!(answer, Err(TaskPanicked));
}

#[test]
fn a_cancelled_task_takes_no_further_item() {
    let pool = Pool::new(2);
    let cancel = CancelToken::new();
    let mut items = vec![0; 10_000];
    pool.each(&mut items, &mut [(), ()], &cancel, |(), item| {
        *item = 1;
        cancel.cancel();
    })
    .expect("no panic");
    // Each thread may have taken one item, and one more before it saw the flag.
    assert!(items.iter().sum::<i32>() <= 4);
}
