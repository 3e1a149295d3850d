/* EventCount: one waiter, NOTIFIERS notifiers, store buffers (ordo/runtime/event_count.h).
 *
 * The waiter waits for the flags of all notifiers. A notifier stores its flag, which stays in its
 * store buffer until the buffer lets it out, and then looks for waiters without a fence. The
 * waiter's heavy fence (membarrier) empties all buffers. Checked: no schedule ends with somebody
 * asleep (an invalid end state), and nobody is left announced.
 *
 * Faults, each of which must be refuted:
 *   NO_HEAVY_FENCE  prepare() does not empty the buffers
 *   NO_SECOND_LOOK  the waiter sleeps without looking at the flags after prepare()
 *   TICKET_LATE     prepare() announces first and reads the ticket afterwards
 *   WAKE_FIRST      the notifier wakes before it moves the epoch
 */
#ifndef NOTIFIERS
#define NOTIFIERS 2
#endif

bool flag[NOTIFIERS];        /* in memory */
bool buffered[NOTIFIERS];    /* in the notifier's store buffer */
byte epoch = 0;
byte waiters = 0;            /* announced */
byte unsignalled = 0;        /* of them, not yet taken by a notifier */
bool asleep = false;

#define READY (flag[0] && flag[NOTIFIERS - 1])

inline leave() {
  atomic {
    waiters--;
    if
    :: unsignalled > waiters -> unsignalled = waiters
    :: else
    fi
  }
}

inline empty_all_buffers() {
  atomic {
    byte b;
    for (b : 0 .. NOTIFIERS - 1) {
      flag[b] = flag[b] || buffered[b];
      buffered[b] = false
    }
  }
}

proctype StoreBuffer(byte owner) {
end:
  do
  :: atomic { buffered[owner] -> flag[owner] = true; buffered[owner] = false }
  od
}

proctype Waiter() {
  byte ticket;
  do
  :: READY -> break
  :: !READY ->
#ifndef TICKET_LATE
    ticket = epoch;
#endif
    atomic { waiters++; unsignalled++ };
#ifdef TICKET_LATE
    ticket = epoch;
#endif
#ifndef NO_HEAVY_FENCE
    empty_all_buffers();
#endif
#ifndef NO_SECOND_LOOK
    if
    :: READY -> leave(); break
    :: !READY
    fi;
#endif
    atomic {                            /* futex wait: compares and falls asleep as one */
      if
      :: epoch == ticket -> asleep = true
      :: else
      fi
    }
    !asleep;
    leave()
  od;
  assert(waiters == 0 && unsignalled == 0)
}

proctype Notifier(byte self) {
  bool took = false;
  buffered[self] = true;
  if
  :: unsignalled == 0
  :: unsignalled > 0 ->
    !buffered[self];                    /* a read-modify-write waits for the buffer */
    atomic {
      if
      :: unsignalled > 0 -> unsignalled--; took = true
      :: else
      fi
    }
    if
    :: took ->
#ifdef WAKE_FIRST
      asleep = false;
      epoch++
#else
      epoch++;
      asleep = false                    /* futex wake */
#endif
    :: else
    fi
  fi
}

init {
  byte i;
  atomic {
    for (i : 0 .. NOTIFIERS - 1) { run StoreBuffer(i); run Notifier(i) }
    run Waiter()
  }
}
