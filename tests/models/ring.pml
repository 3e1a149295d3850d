/* MpscRing: claim, publish, wrap, release (ordo/runtime/mpsc_ring.h), for any number of schedules.
 *
 * PRODUCERS producers push ITEMS items each through CAPACITY slots to one consumer. An item is
 * PRODUCER * 16 + number. Each step is one access to shared memory. Checked: the consumer never
 * reads a slot that is not written, each producer's items arrive once and in order, no written slot
 * is overwritten before it was consumed, and everything ends.
 *
 * Faults, each of which must be refuted:
 *   PUBLISH_FIRST  the sequence is stored before the item
 *   NO_CAPACITY    a claim does not look at the tail
 *   NO_SWAP        a claim reads the head and then stores it
 *   TRUST_HEAD     the consumer looks at the head instead of the slot's sequence
 *   RELEASE_FIRST  the consumer gives the slot back before it reads the item
 */
#ifndef PRODUCERS
#define PRODUCERS 2
#endif
#ifndef ITEMS
#define ITEMS 2
#endif
#ifndef CAPACITY
#define CAPACITY 2
#endif
#define NOTHING 255

byte head = 0;
byte tail = 0;
byte sequence[CAPACITY];
byte item[CAPACITY] = NOTHING;

proctype Producer(byte self) {
  byte number = 0;
  byte h, t;
  do
  :: number == ITEMS -> break
  :: else ->
claim:
    h = head;
    t = tail;
#ifndef NO_CAPACITY
    if
    :: h - t >= CAPACITY ->            /* full: look again when the consumer has moved */
      tail != t || head != h;
      goto claim
    :: else
    fi;
#endif
#ifdef NO_SWAP
    head = h + 1;
#else
    atomic {                           /* compare and swap */
      if
      :: head == h -> head = h + 1
      :: else -> goto claim
      fi
    }
#endif
#ifdef PUBLISH_FIRST
    sequence[h % CAPACITY] = h + 1;
#endif
    atomic {
      assert(item[h % CAPACITY] == NOTHING);   /* nobody else's */
      item[h % CAPACITY] = self * 16 + number
    }
#ifndef PUBLISH_FIRST
    sequence[h % CAPACITY] = h + 1;
#endif
    number++
  od
}

proctype Consumer() {
  byte next = 0;
  byte value;
  byte expected[PRODUCERS];
  do
  :: next == PRODUCERS * ITEMS -> break
  :: else ->
#ifdef TRUST_HEAD
    head > next;
#else
    sequence[next % CAPACITY] == next + 1;
#endif
#ifdef RELEASE_FIRST
    tail = next + 1;
#endif
    value = item[next % CAPACITY];
    assert(value != NOTHING);
    assert(value % 16 == expected[value / 16]);
    expected[value / 16]++;
    item[next % CAPACITY] = NOTHING;   /* destroyed */
#ifndef RELEASE_FIRST
    tail = next + 1;
#endif
    next++
  od
}

init {
  byte i;
  atomic {
    for (i : 0 .. PRODUCERS - 1) { run Producer(i) }
    run Consumer()
  }
}
