// Bugs that can be planted in the broker's core, to see that its simulator
// finds them.
//
//   const bool may_go = ORDO_BUG(2) ? true : lane.leased_count == 0;
//
// In every normal build ORDO_BUG(n) is the constant false, and nothing of a bug
// is left in the program. tests/simulation/planted_bugs.sh builds the core once
// for each number with -DORDO_PLANTED_BUG=n and runs the simulator until it
// complains.
//
//    1 a publish is answered before it is stored
//    2 deliveries go on while a seek is being stored
//    3 an ack of an older delivery counts
//    4 an ack while the dead letter is on its way counts
//    5 a rewind leaves the ack ids of later messages valid
//    6 a nack returns only the message itself, not later ones that are out
//    7 a window of n lets n + 1 out
//    8 the window of a key is spread over consumers
//    9 back-off is not doubled
//   10 back-off ends at once
//   11 a message of a key in back-off goes at once
//   12 attempts are not written down before a redelivery
//   13 the mark of first deliveries is not written down
//   14 a message is delivered once too often before it is given up
//   15 a dead letter is stored without the settlement of its source
//   16 a dead letter that failed counts as done
//   17 a filter is ignored
//   18 the message behind a gap is passed over
//   19 acks are confirmed before they are stored
//   20 acks whose commit failed are not written again
//   21 fences start anew after a restart
//   22 trimming ignores snapshots
//   23 trimming ignores one subscription
//   24 a seek does not erase the rows of before
//   25 a chunk read back is appended behind the tail
//   26 the end of a lease does not give credit back
//   27 a lease ends one second early
//   28 an expired lease is never noticed
//   29 parked keys are not parked after a restart
//   30 a new subscription begins one message too late
#pragma once

#ifdef ORDO_PLANTED_BUG
#define ORDO_BUG(number) (ORDO_PLANTED_BUG == (number))
#else
#define ORDO_BUG(number) false
#endif
