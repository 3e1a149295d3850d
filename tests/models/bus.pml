/* The log of the bus and who sleeps before it (ordo/bus/core.cc, subscriber.h, wake_chain.h).
 *
 * One publisher sends to others, one to the sleeper; each claims a position, writes it later, and
 * wakes its taker if that is marked. The sleeper has the seat of one that has left and is still
 * waking up, which takes the mark off the seat. Checked: no schedule ends with the sleeper asleep
 * (an invalid end state). Fences are left out: park.pml looks into them.
 *
 * Faults, each of which must be refuted:
 *   SLEEP_BLINDLY  the sleeper sleeps before a position that is claimed and not yet written
 *   NO_OWED        who has left takes the mark off without noting the seat as owed
 *   MARK_LATE      the sleeper looks first and marks its seat afterwards
 */
byte tail = 0;
bool written[2];
bool for_sleeper[2];
bool mark = false;
bool owed = false;
bool locked = false;         /* the sleeper's mutex */
bool asleep = false;
byte cursor = 0;
bool found;
bool blocked;

inline serve_owed() {
  if
  :: atomic { owed -> owed = false };
    atomic { !locked -> asleep = false }
  :: !owed
  fi
}

inline look(end) {
  atomic {
    found = false;
    blocked = false;
    do
    :: cursor < end && written[cursor] && !for_sleeper[cursor] -> cursor++
    :: cursor < end && written[cursor] && for_sleeper[cursor] -> found = true; break
    :: cursor < end && !written[cursor] -> blocked = true; break
    :: cursor >= end -> break
    od
  }
}

proctype Publisher(bool sends_to_sleeper) {
  byte position;
  atomic { position = tail; tail++ };
  for_sleeper[position] = sends_to_sleeper;
  written[position] = true;
  if
  :: sends_to_sleeper ->
    if
    :: atomic { mark -> mark = false };
      owed = true;
      serve_owed()
    :: !mark
    fi
  :: else
  fi
}

proctype Leaver() {
  mark = false;
#ifndef NO_OWED
  owed = true;
#endif
  serve_owed()
}

proctype Sleeper() {
  byte end;
  do
  :: end = tail;
    look(end);
    if
    :: found -> break
    :: else
    fi;
    atomic { !locked -> locked = true };
#ifndef MARK_LATE
    mark = true;
#endif
    end = tail;
    look(end);
#ifdef MARK_LATE
    mark = true;
#endif
#ifdef SLEEP_BLINDLY
    blocked = false;
#endif
    if
    :: found || blocked
    :: else ->
      atomic { asleep = true; locked = false };
      !asleep;
      atomic { !locked -> locked = true }
    fi;
    mark = false;
    locked = false;
    serve_owed()
  od
}

init {
  atomic { run Publisher(false); run Publisher(true); run Leaver(); run Sleeper() }
}
