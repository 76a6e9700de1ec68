// RTRs (ready to receive): by one, a receiver lets its peer write into a waiting receive
// (receiver-first rendezvous).
//
// After DCFA-MPI, section IV-B3, which pairs requests by a sequence id alone. MPI also has tags,
// wildcards and cancel, so an RTR says which messages may use it, and which messages its
// receiver had seen when it was sent:
//
// - It is sent only for a receive that names its source and its tag, and only while no receive
//   posted earlier could match the same message.
// - It is a hint. Its sender-to-be keeps it, or drops it without a word: if a message that it sent
//   later than `seen` may be for that receive, if others come and it has no room, if it sends such
//   a message another way. The receiver then gets that message, which matches the receive: that is
//   how it learns.
// - Using one is announced, in the place of the message in the order of messages, before the data.
// - To cancel the receive, the RTR is withdrawn, and that is acknowledged; an announcement, or
//   another message for the receive, that comes before the acknowledgement wins.
// - A cut link ends all RTRs of both sides.
#pragma once

#include "shm/layout/rtr_layout.h"

namespace ferry::engine {

using shm::Rtr;

}  // namespace ferry::engine
