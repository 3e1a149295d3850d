/* WorkLine: who is awake while items wait to be started (ordo/pool/work_line.h, slot_ring.h).
 *
 * One publisher of ITEMS items, WORKERS workers, and a popper that may help, in the post of worker
 * 0, and may go away for ever after any output. The publisher's stores of head stay in its store
 * buffer until they get out by themselves, it does a read-modify-write, or somebody's heavy fence
 * empties it. All but one of WORKERS posts may be held up in an item for ever. What the line judges
 * by measured time (is a wake-up worth it, does a worker stand down, is help wanted) is a free
 * choice here; the EventCount, which park.pml and handover.pml look into, is one bit per waiter. A
 * nap ends at any time. Checked: when nothing can move any more, every item has been started.
 * NO_POPPER leaves the popper out, which allows for more items.
 *
 * Faults, each of which must be refuted:
 *   NO_RMW            the publisher reads spinners and wake-ups while its store is still buffered
 *   NO_LOOK           a worker goes to sleep without a look at the work after it has announced
 *   NO_HEAVY_FENCE    prepare() does not empty the store buffer
 *   NO_PASS           a worker whose post is borrowed tells nobody else
 *   NO_BEGIN_LOOK     a worker that was idle takes an item and does not look at what is behind it
 *   NO_LOOK_BEHIND    a helper that looked takes an item and does not look at what is behind it
 *   SLEEP_BLINDLY     a helper that looked and found nothing for itself sleeps without such a look
 *   LOOK_BLINDLY      the same, if what it found is not to be had in the end
 *   WAKING_EARLY      a worker takes the wake-up back before it announces itself
 *   NO_WATCH_FENCE    a watcher gets up without emptying the store buffer
 */
#ifndef ITEMS
#define ITEMS 2
#endif
#ifndef WORKERS
#define WORKERS 2
#endif

byte published = 0;          /* head, as the publisher has stored it */
byte head = 0;               /* in memory */
byte claim = 0;
byte tail = 0;               /* the popper's */
bool done[ITEMS + 1];
byte spinners = 0;
byte at_work = 0;            /* active_: workers that have had an item since they waited */
bool watcher = false;
bool waking = false;
bool helped = false;         /* a helper has taken something since the last nap */
bool waiting[2];             /* workers, announced and not signalled */
bool pop_waiting = false;    /* the popper, the same */
bool gone = false;           /* the popper */
byte held_up = 0;
mtype = { free, worker, borrower };
mtype post = worker;         /* of worker 0 */

#define UNSTARTED (head > claim)
#define HAS_WAITERS (waiting[0] || waiting[1])
#define CAN_HELP (may_help && head > tail && claim <= tail && post == free)

inline empty_buffer() { head = published }

inline notify_one() {
  if                                    /* any one of the sleepers */
  :: atomic { waiting[0] -> waiting[0] = false }
  :: atomic { waiting[1] -> waiting[1] = false }
  :: !HAS_WAITERS
  fi
}

inline wake_for_work() {
  if
  :: spinners > 0
  :: watcher                            /* and what waits is not worth it */
  :: spinners == 0 ->
    if
    :: waking
    :: atomic { !waking -> waking = true }; notify_one()
    fi
  fi
}

inline look_behind() {
  if
  :: HAS_WAITERS && UNSTARTED -> wake_for_work()
  :: !(HAS_WAITERS && UNSTARTED)
  fi
}

inline get_up() {                       /* the watcher */
  waking = false;
  watcher = false;
#ifndef NO_WATCH_FENCE
  empty_buffer();
#endif
}

inline finish(item) {                   /* and tell the popper; by a worker or a helper */
  done[item] = !gone;
  pop_waiting = pop_waiting && !done[tail]
}

proctype StoreBuffer() {
end:
  do
  :: atomic { head < published -> head++ }
  od
}

proctype Publisher() {
  do
  :: published == ITEMS -> break
  :: atomic { published < ITEMS -> published++ };
    if
    :: !HAS_WAITERS
    :: HAS_WAITERS ->
      if
      :: watcher                        /* but sometimes it looks closely */
#ifdef NO_RMW
      :: skip;
#else
      :: empty_buffer();
#endif
        wake_for_work()
      fi
    fi;
    if                                  /* help may be wanted */
    :: atomic { pop_waiting && claim <= tail -> pop_waiting = false }
    :: true
    fi
  od
}

proctype Worker(byte self) {
  byte item, claim_before;
  bool idle = true;

at_post:                                /* SlotRing::work() */
  if
  :: self > 0
  :: atomic { self == 0 && post != borrower -> post = worker }
  :: self == 0 && post == borrower ->
    waking = false;                     /* pass_on() */
#ifndef NO_PASS
    if
    :: UNSTARTED -> notify_one()
    :: !UNSTARTED
    fi;
#endif
end_await_post:
    atomic { post != borrower -> post = worker }
  fi;
next:                                   /* run_what_is_there() */
  if
  :: atomic { UNSTARTED -> item = claim; claim++ };
    if
    :: idle ->
      atomic { idle = false; at_work++; waking = false }; /* begin_work() */
#ifndef NO_BEGIN_LOOK
      look_behind()
#endif
    :: !idle
    fi;
    if
    :: atomic { finish(item); item = 0 };
      if
      :: goto next
      :: skip                           /* stands down */
      fi
    :: atomic { held_up < WORKERS - 1 -> held_up++; item = 0; idle = true };
end_held_up:
      false
    fi
  :: !UNSTARTED
  fi;
  atomic {
    if
    :: !idle -> idle = true; at_work--
    :: idle
    fi;
    if
    :: self == 0 -> post = free
    :: self > 0
    fi
  };

await_work:
  if
  :: atomic { spinners == 0 -> spinners++ };
    if
    :: UNSTARTED -> spinners--; goto at_post
    :: spinners--
    fi
  :: atomic { spinners > 0 -> spinners++ }; spinners--
  fi;

#ifdef WAKING_EARLY
  waking = false;
#endif
  waiting[self] = true;                 /* prepare() */
#ifndef NO_HEAVY_FENCE
  empty_buffer();
#endif
#ifndef WAKING_EARLY
  waking = false;
#endif
  if
#ifdef NO_LOOK
  :: goto sleep
#else
  :: !UNSTARTED -> goto sleep
  :: UNSTARTED || helped
#endif
  fi;
  if
  :: watcher -> goto sleep
  :: atomic { !watcher -> watcher = true }
  fi;

nap:                                    /* watch() */
  atomic { claim_before = claim; helped = false };
  if
  :: atomic { waiting[self] -> waiting[self] = false };
    if
    :: helped && !(UNSTARTED && claim == claim_before) -> waiting[self] = true; goto nap
    :: true
    fi
  :: !waiting[self]
  fi;
  if
  :: atomic { UNSTARTED && claim == claim_before -> claim_before = 0 };
    get_up();
    goto at_post
  :: atomic { !(UNSTARTED && claim == claim_before) -> claim_before = 0 };
    get_up();
    goto await_work
  fi;

sleep:
end_asleep:
  atomic { !waiting[self] -> waking = false };
  goto await_work
}

proctype Popper() {
  bool waited, may_help;

pop:
  if
  :: done[tail] ->
    if
    :: waited ->
#ifndef NO_LOOK_BEHIND
      look_behind();
#endif
      waited = false
    :: !waited
    fi;
    if
    :: atomic { done[tail] = false; tail++ }; goto pop
    :: goto go_away
    fi
  :: !done[tail] && head > tail ->
    if                                  /* help() */
    :: atomic { post == free -> post = borrower };
      if
      :: atomic { claim == tail -> claim++; helped = true };
        if
        :: waited ->
#ifndef NO_LOOK_BEHIND
          look_behind();
#endif
          waited = false
        :: !waited
        fi;
        if
        :: atomic { finish(tail) }; post = free; goto pop
        :: atomic { held_up < WORKERS - 1 -> held_up++ }; goto go_away
        fi
      :: claim > tail -> post = free
      fi
    :: true
    fi;
    if
#ifndef LOOK_BLINDLY
    :: waited -> look_behind()
#endif
    :: at_work == 0 -> look_behind()     /* call_for_work() */
#ifdef LOOK_BLINDLY
    :: at_work > 0
#else
    :: at_work > 0 && !waited
#endif
    fi
  :: !done[tail] && head <= tail
  fi;

  waited = true;
  if                                    /* await_output() */
  :: atomic { spinners++; may_help = true };
    if
    :: done[tail] || CAN_HELP -> atomic { spinners--; may_help = false }; goto pop
    :: spinners--
    fi;
#ifndef SLEEP_BLINDLY
    look_behind()
#endif
  :: true
  fi;
  do
  :: atomic {
      empty_buffer();
      if
      :: done[tail] || CAN_HELP -> may_help = false; goto pop
      :: else -> pop_waiting = true
      fi
    };
end_waiting:
    !pop_waiting
  od;

go_away:
  atomic {
    gone = true;
    done[tail] = false;
    waited = false;
    tail = ITEMS
  }
}

init {
  atomic {
    run StoreBuffer();
    run Publisher();
    run Worker(0);
    if
    :: WORKERS > 1 -> run Worker(1)
    :: else
    fi;
#ifndef NO_POPPER
    run Popper()
#endif
  }
  timeout;                              /* nothing can move any more */
  assert(claim == ITEMS)
}
