/* EventCount: several consumers, notify_one() for each item (ordo/runtime/event_count.h).
 *
 * WAITERS consumers take one item each and sleep while there is none; as many producers add one
 * each and notify_one(). A wake reaches any one of the sleepers. Checked: no schedule ends with an
 * item left and a consumer asleep (an invalid end state).
 *
 * Faults, each of which must be refuted:
 *   TICKET_LATE   prepare() announces first and reads the ticket afterwards
 *   NO_WAKE       a notifier that took a waiter off the count moves the epoch, but wakes nobody
 *   UNDERCOUNT    a waiter that leaves takes one off the unsignalled count, whoever was signalled
 */
#ifndef WAITERS
#define WAITERS 2
#endif

byte items = 0;
byte epoch = 0;
byte waiters = 0;
byte unsignalled = 0;
bool asleep[3];              /* WAITERS of them are used */

inline leave() {
  atomic {
    waiters--;
#ifdef UNDERCOUNT
    if
    :: unsignalled > 0 -> unsignalled--
    :: else
    fi
#else
    if
    :: unsignalled > waiters -> unsignalled = waiters
    :: else
    fi
#endif
  }
}

proctype Consumer(byte self) {
  byte ticket;
  do
  :: atomic { items > 0 -> items--; break }
  :: items == 0 ->
#ifndef TICKET_LATE
    ticket = epoch;
#endif
    atomic { waiters++; unsignalled++ };
#ifdef TICKET_LATE
    ticket = epoch;
#endif
    if
    :: atomic { items > 0 -> items-- } ; leave(); break
    :: items == 0
    fi;
    atomic {
      if
      :: epoch == ticket -> asleep[self] = true
      :: else
      fi
    }
    !asleep[self];
    leave()
  od
}

inline wake_one() {
  if                                    /* any one of the sleepers */
  :: atomic { asleep[0] -> asleep[0] = false }
  :: atomic { asleep[1] -> asleep[1] = false }
  :: atomic { asleep[2] -> asleep[2] = false }
  :: atomic { !asleep[0] && !asleep[1] && !asleep[2] -> skip }
  fi
}

proctype Producer() {
  bool took = false;
  items++;
  if
  :: unsignalled == 0
  :: unsignalled > 0 ->
    atomic {
      if
      :: unsignalled > 0 -> unsignalled--; took = true
      :: else
      fi
    }
    if
    :: took ->
      epoch++;
#ifndef NO_WAKE
      wake_one()
#else
      skip
#endif
    :: else
    fi
  fi
}

init {
  byte i;
  atomic {
    for (i : 0 .. WAITERS - 1) { run Consumer(i); run Producer() }
  }
}
