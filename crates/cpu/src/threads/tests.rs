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
    // None rests, since the items wait for each other.
    let pool = Pool::with_rest(3, Duration::ZERO);
    for _ in 0..3 {
        std::thread::sleep(std::time::Duration::from_millis(30));
        // Two items that wait for each other need two threads.
        let both = std::sync::Barrier::new(2);
        pool.each(&mut [(); 2], &mut [(); 3], &CancelToken::new(), |(), ()| {
            both.wait();
        })
        .expect("no panic");
    }
}

#[test]
fn a_panic_on_any_thread_is_an_answer_and_the_pool_goes_on() {
    let pool = Pool::new(3);
    let never = CancelToken::new();
    for n_items in [1, 2, 100] {
        for bad in [0, n_items - 1] {
            let mut items: Vec<usize> = (0..n_items).collect();
            let answer = pool.each(&mut items, &mut [(); 3], &never, |(), item| {
                assert_ne!(*item, bad, "a panic that the test wants");
            });
            assert_eq!(answer, Err(TaskPanicked));
            assert_eq!(
                pool.each(&mut items, &mut [(); 3], &never, |(), _| ()),
                Ok(())
            );
        }
    }
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

#[test]
fn a_pool_at_ease_leaves_the_other_threads_alone() {
    let pool = Pool::new(4);
    let never = CancelToken::new();
    for (limit, threads) in [(1, 1), (2, 2), (0, 1)] {
        pool.limit(limit);
        let mut counts = [0usize; 4];
        for _ in 0..50 {
            pool.each(&mut [(); 100], &mut counts, &never, |count, ()| *count += 1)
                .expect("no panic");
        }
        assert_eq!(counts.iter().sum::<usize>(), 50 * 100);
        assert_eq!(counts[threads..].iter().sum::<usize>(), 0, "{limit}");
    }
    pool.limit(usize::MAX);
    // Two items that wait for each other need two threads again.
    let both = std::sync::Barrier::new(2);
    pool.each(&mut [(); 2], &mut [(); 4], &never, |(), ()| {
        both.wait();
    })
    .expect("no panic");
}

/// The most rounds until a late worker is known as one: the caller itself may be kept from running.
const ROUNDS_MOST: usize = 20;

/// Makes the worker of a pool of two late, until it rests.
fn tire(pool: &Pool) {
    for _ in 0..ROUNDS_MOST {
        let both = std::sync::Barrier::new(2);
        let caller = std::thread::current().id();
        let item = |(): &mut (), (): &mut ()| {
            both.wait();
            if std::thread::current().id() != caller {
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
        };
        pool.each(&mut [(); 2], &mut [(); 2], &CancelToken::new(), item)
            .expect("no panic");
        if pool.shared.seats[1].rests.load(Ordering::Relaxed) {
            return;
        }
    }
    panic!("nobody saw that the worker was late");
}

#[test]
fn a_worker_that_makes_the_others_wait_rests() {
    let pool = Pool::with_rest(2, Duration::from_secs(3_600));
    tire(&pool);
    for _ in 0..20 {
        let mut counts = [0; 2];
        pool.each(&mut [(); 100], &mut counts, &CancelToken::new(), |n, ()| {
            *n += 1;
        })
        .expect("no panic");
        assert_eq!(counts, [100, 0]);
    }
    // It is not left behind when the pool goes.
    drop(pool);
}

#[test]
fn a_worker_that_has_rested_comes_back() {
    let pool = Pool::with_rest(2, Duration::ZERO);
    for _ in 0..3 {
        tire(&pool);
        // Two items that wait for each other need two threads.
        let both = std::sync::Barrier::new(2);
        pool.each(&mut [(); 2], &mut [(); 2], &CancelToken::new(), |(), ()| {
            both.wait();
        })
        .expect("no panic");
    }
}

#[test]
fn a_rest_is_longer_the_sooner_a_worker_is_late_again() {
    let most = Duration::from_millis(320);
    let ms = Duration::from_millis;
    let start = Instant::now();
    // How long after the end of the last rest the next late task begins, and how long the rest is.
    for (tries, expected) in [
        (&[0][..], 10),
        (&[0, 1], 20),
        (&[0, 80, 160], 40),
        (&[0, 1, 1, 1, 1, 1, 1], 320),
        (&[0, 81], 10),
        (&[0, 1, 1, 321], 10),
    ] {
        let mut turn = Turn::default();
        let mut begun = start;
        for after in tries {
            begun += ms(*after);
            turn.rest(begun, most);
            let (length, _) = turn.last.expect("it rests");
            // As if it had been late at once.
            begun += length;
            turn.last = Some((length, begun));
        }
        assert_eq!(
            turn.last.map(|(length, _)| length),
            Some(ms(expected)),
            "{tries:?}"
        );
    }
}
