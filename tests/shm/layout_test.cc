// The literal numbers of every layout in shared memory. A failure here means that programs of two
// builds no longer understand each other: bump kLayoutVersion in common/version.h, then change the
// numbers.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "common/version.h"
#include "shm/layout/call_layout.h"
#include "shm/layout/call_names.h"
#include "shm/layout/counter_layout.h"
#include "shm/layout/descriptor.h"
#include "shm/layout/device_ring_layout.h"
#include "shm/layout/inbox_layout.h"
#include "shm/layout/journal_layout.h"
#include "shm/layout/lane_layout.h"
#include "shm/layout/lease_layout.h"
#include "shm/layout/match_layout.h"
#include "shm/layout/mpsc_ring_layout.h"
#include "shm/layout/one_sided_layout.h"
#include "shm/layout/pair_layout.h"
#include "shm/layout/request_layout.h"
#include "shm/layout/rtr_layout.h"
#include "shm/layout/segment_header.h"
#include "shm/layout/session_layout.h"
#include "shm/layout/transfer_layout.h"
#include "shm/layout/wake_layout.h"

namespace ferry::shm {
namespace {

constexpr char kBump[] = "a layout changed: bump kLayoutVersion";

#define EXPECT_SIZE(type, size_bytes) EXPECT_EQ(sizeof(type), size_bytes##U) << kBump
#define EXPECT_AT(type, member, offset) EXPECT_EQ(offsetof(type, member), offset##U) << kBump

TEST(LayoutTest, SegmentHeader) {
  EXPECT_SIZE(SegmentHeader, 128);
  EXPECT_AT(SegmentHeader, magic, 0);
  EXPECT_AT(SegmentHeader, layout_version, 8);
  EXPECT_AT(SegmentHeader, kind, 12);
  EXPECT_AT(SegmentHeader, size_bytes, 16);
  EXPECT_AT(SegmentHeader, creator_pid, 24);
  EXPECT_AT(SegmentHeader, rank, 28);
  EXPECT_AT(SegmentHeader, job_size, 32);
  EXPECT_AT(SegmentHeader, local_size, 36);
  EXPECT_AT(SegmentHeader, request_limit, 40);
  EXPECT_AT(SegmentHeader, unexpected_limit, 44);
}

TEST(LayoutTest, Descriptor) {
  EXPECT_SIZE(Descriptor, 64);
  EXPECT_AT(Descriptor, stamp, 0);
  EXPECT_AT(Descriptor, kind, 4);
  EXPECT_AT(Descriptor, flags, 5);
  EXPECT_AT(Descriptor, cell, 6);
  EXPECT_AT(Descriptor, source, 8);
  EXPECT_AT(Descriptor, destination, 12);
  EXPECT_AT(Descriptor, context, 16);
  EXPECT_AT(Descriptor, tag, 20);
  EXPECT_AT(Descriptor, size_bytes, 24);
  EXPECT_AT(Descriptor, payload, 32);
}

TEST(LayoutTest, Location) {
  EXPECT_SIZE(Location, 16);
  EXPECT_AT(Location, region, 0);
  EXPECT_AT(Location, address, 8);
}

TEST(LayoutTest, LocalRts) {
  EXPECT_SIZE(LocalRts, 32);
  EXPECT_AT(LocalRts, transfer, 0);
  EXPECT_AT(LocalRts, generation, 4);
}

TEST(LayoutTest, RemoteRts) {
  EXPECT_SIZE(RemoteRts, 32);
  EXPECT_AT(RemoteRts, send_request, 0);
  EXPECT_AT(RemoteRts, send_generation, 4);
  EXPECT_AT(RemoteRts, key, 8);
  EXPECT_AT(RemoteRts, where, 16);
}

TEST(LayoutTest, RndvGetCommand) {
  EXPECT_SIZE(RndvGetCommand, 32);
  EXPECT_AT(RndvGetCommand, transfer, 0);
  EXPECT_AT(RndvGetCommand, generation, 4);
}

TEST(LayoutTest, TransferResult) {
  EXPECT_SIZE(TransferResult, 32);
  EXPECT_AT(TransferResult, request, 0);
  EXPECT_AT(TransferResult, generation, 4);
  EXPECT_AT(TransferResult, error, 8);
}

TEST(LayoutTest, Accusation) {
  EXPECT_SIZE(Accusation, 32);
  EXPECT_AT(Accusation, lane, 0);
}

TEST(LayoutTest, CreditReturn) {
  EXPECT_SIZE(CreditReturn, 32);
  EXPECT_AT(CreditReturn, count, 0);
  EXPECT_AT(CreditReturn, flags, 4);
  EXPECT_AT(CreditReturn, bytes, 8);
  EXPECT_AT(CreditReturn, epoch, 12);
}

TEST(LayoutTest, DirectLinks) {
  EXPECT_SIZE(SwitchMarker, 32);
  EXPECT_AT(SwitchMarker, epoch, 0);
  EXPECT_SIZE(LinkCommand, 32);
  EXPECT_AT(LinkCommand, matter, 0);
}

TEST(LayoutTest, LaneProducerWords) {
  EXPECT_SIZE(LaneProducerWords, 128);
  EXPECT_AT(LaneProducerWords, state, 0);
  EXPECT_AT(LaneProducerWords, producer_rank, 4);
  EXPECT_AT(LaneProducerWords, tail, 8);
  EXPECT_AT(LaneProducerWords, waiting, 16);
}

TEST(LayoutTest, LaneConsumerWords) {
  EXPECT_SIZE(LaneConsumerWords, 128);
  EXPECT_AT(LaneConsumerWords, head, 0);
}

TEST(LayoutTest, LaneLayout) {
  EXPECT_SIZE(LaneLayout, 544768);
  EXPECT_AT(LaneLayout, producer, 0);
  EXPECT_AT(LaneLayout, consumer, 128);
  EXPECT_AT(LaneLayout, cell_state, 256);
  EXPECT_AT(LaneLayout, slots, 384);
  EXPECT_AT(LaneLayout, cells, 20480);
}

TEST(LayoutTest, WakeLayout) {
  EXPECT_SIZE(WakeLayout, 384);
  EXPECT_AT(WakeLayout, sequence, 0);
  EXPECT_AT(WakeLayout, sleepers, 4);
  EXPECT_AT(WakeLayout, activity, 8);
  EXPECT_AT(WakeLayout, inside, 256);
  EXPECT_AT(WakeLayout, urgent, 260);
  EXPECT_AT(WakeLayout, death_epoch, 264);
  EXPECT_AT(WakeLayout, poison, 268);
  EXPECT_AT(WakeLayout, resting, 272);
  EXPECT_AT(WakeLayout, changes, 276);
}

TEST(LayoutTest, InboxLayout) {
  EXPECT_SIZE(InboxLayout, 4096);
  EXPECT_AT(InboxLayout, header, 0);
  EXPECT_AT(InboxLayout, wake, 128);
}

TEST(LayoutTest, TransferLayout) {
  EXPECT_SIZE(TransferLayout, 128);
  EXPECT_AT(TransferLayout, state, 0);
  EXPECT_AT(TransferLayout, generation, 4);
  EXPECT_AT(TransferLayout, source, 8);
  EXPECT_AT(TransferLayout, destination, 24);
  EXPECT_AT(TransferLayout, size_bytes, 40);
  EXPECT_AT(TransferLayout, chunk_bytes, 48);
  EXPECT_AT(TransferLayout, source_rank, 52);
  EXPECT_AT(TransferLayout, claim, 64);
  EXPECT_AT(TransferLayout, done_chunks, 72);
  EXPECT_AT(TransferLayout, error, 76);
  EXPECT_AT(TransferLayout, remote_key, 80);
  EXPECT_AT(TransferLayout, remote_request, 88);
  EXPECT_AT(TransferLayout, remote_generation, 92);
  EXPECT_AT(TransferLayout, remote_flags, 96);
  EXPECT_AT(TransferLayout, destination_rank, 100);
  EXPECT_AT(TransferLayout, out_of_reach, 104);
  EXPECT_AT(TransferLayout, moved_source, 112);
}

TEST(LayoutTest, LeaseLayout) {
  EXPECT_SIZE(LeaseLayout, 128);
  EXPECT_AT(LeaseLayout, word, 0);
  EXPECT_AT(LeaseLayout, owner, 4);
  EXPECT_AT(LeaseLayout, handovers, 8);
}

TEST(LayoutTest, JournalEntry) {
  EXPECT_SIZE(JournalEntry, 16);
  EXPECT_AT(JournalEntry, place, 0);
  EXPECT_AT(JournalEntry, value, 8);
}

TEST(LayoutTest, JournalLayout) {
  EXPECT_SIZE(JournalLayout, 1024);
  EXPECT_AT(JournalLayout, count, 0);
  EXPECT_AT(JournalLayout, recoveries, 8);
  EXPECT_AT(JournalLayout, entries, 32);
}

TEST(LayoutTest, PeerWords) {
  EXPECT_SIZE(PeerWords, 64);
  EXPECT_AT(PeerWords, queue_first, 0);
  EXPECT_AT(PeerWords, queue_last, 4);
  EXPECT_AT(PeerWords, sent, 8);
  EXPECT_AT(PeerWords, credited, 12);
  EXPECT_AT(PeerWords, drained, 16);
  EXPECT_AT(PeerWords, returned, 20);
  EXPECT_AT(PeerWords, dead, 24);
  EXPECT_AT(PeerWords, cut, 28);
  EXPECT_AT(PeerWords, path, 32);
  EXPECT_AT(PeerWords, path_epoch, 36);
  EXPECT_AT(PeerWords, inward_path, 40);
  EXPECT_AT(PeerWords, marker_owed, 44);
  EXPECT_AT(PeerWords, pushed, 48);
  EXPECT_AT(PeerWords, pushed_credited, 52);
  EXPECT_AT(PeerWords, pushed_taken, 56);
  EXPECT_AT(PeerWords, pushed_returned, 60);
}

TEST(LayoutTest, LinkWords) {
  EXPECT_SIZE(LinkWords, 16);
  EXPECT_AT(LinkWords, bytes, 0);
  EXPECT_AT(LinkWords, messages, 8);
  EXPECT_AT(LinkWords, state, 12);
}

TEST(LayoutTest, OneSided) {
  EXPECT_SIZE(OneSidedCommand, 32);
  EXPECT_AT(OneSidedCommand, operation, 0);
  EXPECT_AT(OneSidedCommand, signal, 1);
  EXPECT_AT(OneSidedCommand, width, 2);
  EXPECT_AT(OneSidedCommand, answer, 4);
  EXPECT_AT(OneSidedCommand, serial, 6);
  EXPECT_AT(OneSidedCommand, offset, 8);
  EXPECT_AT(OneSidedCommand, operand, 16);
  EXPECT_AT(OneSidedCommand, compare, 24);
  EXPECT_SIZE(OneSidedWords, 8);
  EXPECT_AT(OneSidedWords, done, 0);
  EXPECT_SIZE(OneSidedFailure, 24);
  EXPECT_AT(OneSidedFailure, first, 0);
  EXPECT_AT(OneSidedFailure, last, 8);
  EXPECT_AT(OneSidedFailure, peer, 16);
  EXPECT_AT(OneSidedFailure, error, 20);
  EXPECT_SIZE(OneSidedFailures, 24704);
  EXPECT_AT(OneSidedFailures, count, 0);
  EXPECT_AT(OneSidedFailures, entries, 128);
  EXPECT_SIZE(AnswerLayout, 16);
  EXPECT_AT(AnswerLayout, value, 0);
  EXPECT_AT(AnswerLayout, error, 8);
  EXPECT_AT(AnswerLayout, serial, 12);
}

TEST(LayoutTest, SessionLayout) {
  EXPECT_SIZE(SessionLayout, 1691648);
  EXPECT_AT(SessionLayout, header, 0);
  EXPECT_AT(SessionLayout, lease, 128);
  EXPECT_AT(SessionLayout, journal, 256);
  EXPECT_AT(SessionLayout, daemon_wake, 1280);
  EXPECT_AT(SessionLayout, counters, 1664);
  EXPECT_AT(SessionLayout, request_fresh, 2048);
  EXPECT_AT(SessionLayout, queued_sends, 2052);
  EXPECT_AT(SessionLayout, control_first, 2056);
  EXPECT_AT(SessionLayout, control_last, 2060);
  EXPECT_AT(SessionLayout, credits_owed, 2064);
  EXPECT_AT(SessionLayout, push_request, 2068);
  EXPECT_AT(SessionLayout, push_number, 2072);
  EXPECT_AT(SessionLayout, fault, 2080);
  EXPECT_AT(SessionLayout, deaths_applied, 2096);
  EXPECT_AT(SessionLayout, withdrawals, 2100);
  EXPECT_AT(SessionLayout, pairs_armed, 2104);
  EXPECT_AT(SessionLayout, rings_changed, 2112);
  EXPECT_AT(SessionLayout, link_control_first, 2120);
  EXPECT_AT(SessionLayout, link_control_last, 2124);
  EXPECT_AT(SessionLayout, link_duties, 2128);
  EXPECT_AT(SessionLayout, linked_peers, 2132);
  EXPECT_AT(SessionLayout, link_after_bytes, 2136);
  EXPECT_AT(SessionLayout, link_after_messages, 2144);
  EXPECT_AT(SessionLayout, life_read, 2148);
  EXPECT_AT(SessionLayout, life_answered, 2152);
  EXPECT_AT(SessionLayout, to_daemon, 4096);
  EXPECT_AT(SessionLayout, to_link, 548864);
  EXPECT_AT(SessionLayout, link_wake, 1093632);
  EXPECT_AT(SessionLayout, rings, 1097728);
  EXPECT_AT(SessionLayout, answers, 1101824);
  EXPECT_AT(SessionLayout, failures, 1102848);
  EXPECT_AT(SessionLayout, answer_cells, 1155072);
  EXPECT_AT(SessionLayout, calls, 1679360);
}

TEST(LayoutTest, CallBoardLayout) {
  EXPECT_SIZE(CallRecordLayout, 128);
  EXPECT_AT(CallRecordLayout, sequence, 0);
  EXPECT_AT(CallRecordLayout, generation, 8);
  EXPECT_AT(CallRecordLayout, begin_ns, 16);
  EXPECT_AT(CallRecordLayout, name, 24);
  EXPECT_AT(CallRecordLayout, inner, 26);
  EXPECT_AT(CallRecordLayout, flags, 28);
  EXPECT_AT(CallRecordLayout, thread, 32);
  EXPECT_AT(CallRecordLayout, group, 36);
  EXPECT_AT(CallRecordLayout, peer, 40);
  EXPECT_AT(CallRecordLayout, peer_in_group, 44);
  EXPECT_AT(CallRecordLayout, tag, 48);
  EXPECT_AT(CallRecordLayout, bytes, 56);
  EXPECT_AT(CallRecordLayout, number, 64);
  EXPECT_AT(CallRecordLayout, object, 72);
  EXPECT_AT(CallRecordLayout, missing, 80);
  EXPECT_AT(CallRecordLayout, missing_count, 84);
  EXPECT_AT(CallRecordLayout, group_name, 88);
  EXPECT_SIZE(CallTotals, 32);
  EXPECT_AT(CallTotals, calls, 0);
  EXPECT_AT(CallTotals, bytes, 8);
  EXPECT_AT(CallTotals, waits, 16);
  EXPECT_AT(CallTotals, waited_ns, 24);
  EXPECT_SIZE(CallBoardLayout, 9344);
  EXPECT_AT(CallBoardLayout, unshown, 0);
  EXPECT_AT(CallBoardLayout, slots, 128);
  EXPECT_AT(CallBoardLayout, totals, 1152);
}

// Some of the numbers; a line in the middle of the list moves the later ones.
TEST(LayoutTest, CallNames) {
  EXPECT_EQ(static_cast<int>(CallName::kMpiSend), 1) << kBump;
  EXPECT_EQ(static_cast<int>(CallName::kMpiBarrier), 48) << kBump;
  EXPECT_EQ(static_cast<int>(CallName::kShmemQuiet), 183) << kBump;
  EXPECT_EQ(static_cast<int>(CallName::kFerryStreamSynchronize), 220) << kBump;
  EXPECT_EQ(static_cast<int>(CallName::kMpiFileWriteOrdered), 243) << kBump;
}

TEST(LayoutTest, FaultLayout) {
  EXPECT_SIZE(FaultLayout, 16);
  EXPECT_AT(FaultLayout, kind, 0);
  EXPECT_AT(FaultLayout, where, 4);
  EXPECT_AT(FaultLayout, value, 8);
}

TEST(LayoutTest, RtrBook) {
  EXPECT_SIZE(Rtr, 24);
  EXPECT_AT(Rtr, context, 0);
  EXPECT_AT(Rtr, tag, 4);
  EXPECT_AT(Rtr, receive, 8);
  EXPECT_AT(Rtr, generation, 12);
  EXPECT_AT(Rtr, seen, 16);
  EXPECT_SIZE(SentEnvelope, 8);
  EXPECT_SIZE(RtrBook, 192);
  EXPECT_AT(RtrBook, sent, 0);
  EXPECT_AT(RtrBook, taken, 8);
  EXPECT_AT(RtrBook, history, 16);
  EXPECT_AT(RtrBook, rtrs, 80);
  EXPECT_AT(RtrBook, held, 176);
  EXPECT_AT(RtrBook, cuts, 180);
  EXPECT_AT(RtrBook, cuts_applied, 184);
  EXPECT_SIZE(RtrWords, 32);
  EXPECT_SIZE(PutCommand, 32);
}

TEST(LayoutTest, RequestLayout) {
  EXPECT_SIZE(RequestLayout, 192);
  EXPECT_AT(RequestLayout, state, 0);
  EXPECT_AT(RequestLayout, generation, 4);
  EXPECT_AT(RequestLayout, kind, 8);
  EXPECT_AT(RequestLayout, flags, 12);
  EXPECT_AT(RequestLayout, context, 16);
  EXPECT_AT(RequestLayout, peer, 20);
  EXPECT_AT(RequestLayout, tag, 24);
  EXPECT_AT(RequestLayout, next, 28);
  EXPECT_AT(RequestLayout, buffer, 32);
  EXPECT_AT(RequestLayout, size_bytes, 48);
  EXPECT_AT(RequestLayout, error, 56);
  EXPECT_AT(RequestLayout, status_source, 60);
  EXPECT_AT(RequestLayout, status_tag, 64);
  EXPECT_AT(RequestLayout, match_entry, 68);
  EXPECT_AT(RequestLayout, message_bytes, 72);
  EXPECT_AT(RequestLayout, lane, 80);
  EXPECT_AT(RequestLayout, cell, 84);
  EXPECT_AT(RequestLayout, descriptor_kind, 86);
  EXPECT_AT(RequestLayout, descriptor_flags, 87);
  EXPECT_AT(RequestLayout, transfer_rank, 88);
  EXPECT_AT(RequestLayout, transfer_index, 92);
  EXPECT_AT(RequestLayout, transfer_generation, 96);
  EXPECT_AT(RequestLayout, serial, 100);
  EXPECT_AT(RequestLayout, payload, 104);
  EXPECT_AT(RequestLayout, user_address, 136);
  EXPECT_AT(RequestLayout, start_ns, 144);
  EXPECT_AT(RequestLayout, rtr, 152);
  EXPECT_AT(RequestLayout, link_end, 156);
}

TEST(LayoutTest, MatchEntry) {
  EXPECT_SIZE(MatchEntry, 128);
  EXPECT_AT(MatchEntry, state, 0);
  EXPECT_AT(MatchEntry, context, 4);
  EXPECT_AT(MatchEntry, source, 8);
  EXPECT_AT(MatchEntry, tag, 12);
  EXPECT_AT(MatchEntry, sequence, 16);
  EXPECT_AT(MatchEntry, next, 24);
  EXPECT_AT(MatchEntry, previous, 40);
  EXPECT_AT(MatchEntry, request, 56);
  EXPECT_AT(MatchEntry, lane, 60);
  EXPECT_AT(MatchEntry, size_bytes, 64);
  EXPECT_AT(MatchEntry, kind, 72);
  EXPECT_AT(MatchEntry, flags, 73);
  EXPECT_AT(MatchEntry, cell, 74);
  EXPECT_AT(MatchEntry, reserved, 76);
  EXPECT_AT(MatchEntry, payload, 80);
}

TEST(LayoutTest, MatchBucket) {
  EXPECT_SIZE(MatchBucket, 8);
  EXPECT_AT(MatchBucket, first, 0);
  EXPECT_AT(MatchBucket, last, 4);
}

TEST(LayoutTest, MatchTableLayout) {
  EXPECT_SIZE(MatchTableLayout, 45056);
  EXPECT_AT(MatchTableLayout, capacity, 0);
  EXPECT_AT(MatchTableLayout, free_first, 4);
  EXPECT_AT(MatchTableLayout, fresh, 8);
  EXPECT_AT(MatchTableLayout, posted_count, 12);
  EXPECT_AT(MatchTableLayout, unexpected_count, 16);
  EXPECT_AT(MatchTableLayout, posted_kind_count, 20);
  EXPECT_AT(MatchTableLayout, next_sequence, 40);
  EXPECT_AT(MatchTableLayout, posted, 128);
  EXPECT_AT(MatchTableLayout, unexpected, 8320);
}

TEST(LayoutTest, PairLayout) {
  EXPECT_SIZE(PairLayout, 448);
  EXPECT_AT(PairLayout, start, 0);
  EXPECT_AT(PairLayout, done, 64);
  EXPECT_AT(PairLayout, meet, 128);
  EXPECT_AT(PairLayout, pair, 192);
  EXPECT_AT(PairLayout, armed, 256);
  EXPECT_AT(PairLayout, gate, 264);
  EXPECT_AT(PairLayout, claim, 272);
  EXPECT_AT(PairLayout, moved, 280);
  EXPECT_AT(PairLayout, sleeps, 288);
  EXPECT_AT(PairLayout, shares, 292);
  EXPECT_AT(PairLayout, shared_start, 296);
  EXPECT_AT(PairLayout, shared_base, 304);
  EXPECT_AT(PairLayout, shared_until, 312);
  EXPECT_AT(PairLayout, page, 320);
  EXPECT_AT(PairLayout, follows, 384);
  EXPECT_SIZE(FollowWords, 64);
  EXPECT_AT(FollowWords, count, 0);
  EXPECT_AT(FollowWords, ends, 8);
  EXPECT_SIZE(CounterPageWords, 64);
  EXPECT_AT(CounterPageWords, id, 0);
  EXPECT_AT(CounterPageWords, offset, 8);
  EXPECT_AT(CounterPageWords, size_bytes, 16);
  EXPECT_AT(CounterPageWords, add, 24);
  EXPECT_AT(CounterPageWords, nic, 28);
  EXPECT_AT(CounterPageWords, used, 32);
  EXPECT_AT(CounterPageWords, first, 40);
  EXPECT_EQ(kMoveChunkBytes, 128U << 10) << kBump;
  EXPECT_SIZE(PairWords, 64);
  EXPECT_AT(PairWords, state, 0);
  EXPECT_AT(PairWords, error, 4);
  EXPECT_AT(PairWords, mode, 8);
  EXPECT_AT(PairWords, size_bytes, 16);
  EXPECT_AT(PairWords, end, 24);
  EXPECT_AT(PairWords, window, 40);
}

TEST(LayoutTest, CounterLayout) {
  EXPECT_SIZE(CounterLayout, 64);
  EXPECT_AT(CounterLayout, value, 0);
  EXPECT_AT(CounterLayout, error, 8);
}

TEST(LayoutTest, MpscSlot) {
  EXPECT_SIZE(MpscSlot, 64);
  EXPECT_AT(MpscSlot, number, 0);
  EXPECT_AT(MpscSlot, payload, 8);
}

TEST(LayoutTest, MpscRingLayout) {
  EXPECT_SIZE(MpscRingLayout, 384);
  EXPECT_AT(MpscRingLayout, tickets, 0);
  EXPECT_AT(MpscRingLayout, head_seen, 8);
  EXPECT_AT(MpscRingLayout, head, 128);
  EXPECT_AT(MpscRingLayout, ended, 136);
  EXPECT_AT(MpscRingLayout, over, 144);
  EXPECT_AT(MpscRingLayout, failed, 152);
  EXPECT_AT(MpscRingLayout, capacity, 256);
  EXPECT_AT(MpscRingLayout, completions, 260);
  EXPECT_AT(MpscRingLayout, region, 264);
  EXPECT_AT(MpscRingLayout, completions_offset, 272);
  EXPECT_AT(MpscRingLayout, producer_words, 280);
}

TEST(LayoutTest, RingRequest) {
  EXPECT_SIZE(RingRequest, 56);
  EXPECT_AT(RingRequest, kind, 0);
  EXPECT_AT(RingRequest, completion_region, 4);
  EXPECT_AT(RingRequest, completion, 8);
  EXPECT_AT(RingRequest, region, 16);
  EXPECT_AT(RingRequest, flags, 20);
  EXPECT_AT(RingRequest, offset, 24);
  EXPECT_AT(RingRequest, value, 32);
}

TEST(LayoutTest, RingOperation) {
  EXPECT_SIZE(RingOperation, 56);
  EXPECT_AT(RingOperation, kind, 0);
  EXPECT_AT(RingOperation, completion_region, 4);
  EXPECT_AT(RingOperation, completion, 8);
  EXPECT_AT(RingOperation, region, 16);
  EXPECT_AT(RingOperation, operation, 20);
  EXPECT_AT(RingOperation, width, 21);
  EXPECT_AT(RingOperation, flags, 22);
  EXPECT_AT(RingOperation, operand, 24);
  EXPECT_AT(RingOperation, there, 32);
  EXPECT_AT(RingOperation, rank, 40);
  EXPECT_AT(RingOperation, segment, 44);
  EXPECT_AT(RingOperation, compare, 48);
}

TEST(LayoutTest, RingCompletion) {
  EXPECT_SIZE(RingCompletion, 16);
  EXPECT_AT(RingCompletion, value, 0);
  EXPECT_AT(RingCompletion, done, 8);
}

TEST(LayoutTest, RingWords) {
  EXPECT_SIZE(RingWords, 256);
  EXPECT_AT(RingWords, life, 0);
  EXPECT_AT(RingWords, region, 4);
  EXPECT_AT(RingWords, offset, 8);
  EXPECT_AT(RingWords, capacity, 16);
  EXPECT_AT(RingWords, life_seen, 128);
  EXPECT_AT(RingWords, error, 132);
  EXPECT_AT(RingWords, requests, 136);
  EXPECT_AT(RingWords, errors, 144);
  EXPECT_AT(RingWords, first_ticket, 152);
  EXPECT_AT(RingWords, first_kind, 160);
  EXPECT_AT(RingWords, first_error, 164);
}

TEST(LayoutTest, Constants) {
  EXPECT_EQ(kLayoutVersion, 17U) << "tell docs/shm_layout.md and CHANGELOG.md";
  EXPECT_EQ(kSegmentMagic, 0x5952524546303031ULL);
  EXPECT_EQ(kLaneSlots, 256U) << kBump;
  EXPECT_EQ(kLaneCells, 64U) << kBump;
  EXPECT_EQ(kCellBytes, 8192U) << kBump;
  EXPECT_EQ(kMostAccumulated, 1024U) << kBump;
  EXPECT_EQ(kInlineBytes, 32U) << kBump;
  EXPECT_EQ(kActivityWords, 17U) << kBump;
  EXPECT_EQ(kJournalEntries, 62U) << kBump;
  EXPECT_EQ(kMatchBuckets, 1024U) << kBump;
  EXPECT_EQ(kMaxLocalRanks, 1024U) << kBump;
  EXPECT_EQ(kCounterWords, 48U) << kBump;
  EXPECT_EQ(kCallSlots, 8U) << kBump;
  EXPECT_EQ(kMostCallNames, 256U) << kBump;
  EXPECT_EQ(kMpscPayloadBytes, 56U) << kBump;
  EXPECT_EQ(kMaxRings, 16U) << kBump;
  EXPECT_EQ(kRingStatusBits, 16U) << kBump;
  EXPECT_EQ(kLeaseWanted, 0x80000000U) << kBump;
  EXPECT_EQ(kLeaseWorker, 0x40000000U) << kBump;
  EXPECT_EQ(kCounterFailure, 0x4000000000000000ULL) << kBump;
}

TEST(LayoutTest, PlacesInsideSegments) {
  EXPECT_EQ(InboxLaneOffset(0), 4096U) << kBump;
  EXPECT_EQ(InboxLaneOffset(DaemonLane(2)), 1093632U) << kBump;
  EXPECT_EQ(InboxLaneOffset(LinkLane(2)), 1638400U) << kBump;
  EXPECT_EQ(InboxTransferOffset(2), 2183168U) << kBump;
  EXPECT_EQ(InboxSizeBytes(2, 100), 2199552U) << kBump;
  EXPECT_EQ(SessionRequestsOffset(), 1691648U) << kBump;
  const SessionPlaces at = PlacesOfSession(/*job_size=*/100, /*request_limit=*/100);
  EXPECT_EQ(at.peers, 1710848U) << kBump;
  EXPECT_EQ(at.rtrs, 1717248U) << kBump;
  EXPECT_EQ(at.links, 1736448U) << kBump;
  EXPECT_EQ(at.busy, 1738048U) << kBump;
  EXPECT_EQ(at.one_sided, 1738112U) << kBump;
  EXPECT_EQ(at.gone, 1738912U) << kBump;
  EXPECT_EQ(at.match, 1740800U) << kBump;
  EXPECT_EQ(SessionSizeBytes(100, 100, 1000), 1916928U) << kBump;
}

// Rank numbers have 32 bits everywhere, so the places of any job fit into 64.
TEST(LayoutTest, PlacesOfTheLargestJob) {
  const SessionPlaces at = PlacesOfSession(UINT32_MAX, UINT32_MAX);
  EXPECT_LT(SessionRequestsOffset(), at.peers);
  EXPECT_LT(at.peers, at.rtrs);
  EXPECT_LT(at.rtrs, at.links);
  EXPECT_LT(at.links, at.busy);
  EXPECT_LT(at.busy, at.one_sided);
  EXPECT_LT(at.one_sided, at.gone);
  EXPECT_LT(at.gone, at.match);
  EXPECT_LT(at.match, SessionSizeBytes(UINT32_MAX, UINT32_MAX, UINT32_MAX));
}

// The bits that two processes must agree on, written as numbers.
TEST(LayoutTest, Enumerations) {
  EXPECT_EQ(static_cast<int>(SegmentKind::kInbox), 2);
  EXPECT_EQ(static_cast<int>(DescriptorKind::kEager), 1);
  EXPECT_EQ(static_cast<int>(DescriptorKind::kCredit), 7);
  EXPECT_EQ(static_cast<int>(DescriptorKind::kAccuse), 8);
  EXPECT_EQ(static_cast<int>(DescriptorKind::kRtr), 9);
  EXPECT_EQ(static_cast<int>(DescriptorKind::kWithdraw), 10);
  EXPECT_EQ(static_cast<int>(DescriptorKind::kWithdrawn), 11);
  EXPECT_EQ(static_cast<int>(DescriptorKind::kPut), 12);
  EXPECT_EQ(static_cast<int>(DescriptorKind::kRetract), 13);
  EXPECT_EQ(static_cast<int>(DescriptorKind::kRetracted), 14);
  EXPECT_EQ(static_cast<int>(DescriptorKind::kLeft), 15);
  EXPECT_EQ(static_cast<int>(DescriptorKind::kOneSided), 16);
  EXPECT_EQ(static_cast<int>(DescriptorKind::kSwitch), 17);
  EXPECT_EQ(static_cast<int>(DescriptorKind::kLinkWanted), 18);
  EXPECT_EQ(kFlagPushed, 16);
  EXPECT_EQ(kCreditAll, 1U);
  EXPECT_EQ(kRequestByLink, 32U);
  EXPECT_EQ(static_cast<int>(PeerPath::kLink), 2);
  EXPECT_EQ(static_cast<int>(PeerPath::kBroken), 5);
  EXPECT_EQ(static_cast<int>(LinkState::kOpen), 4);
  EXPECT_EQ(static_cast<int>(LinkState::kTold), 6);
  EXPECT_EQ(static_cast<int>(LinkMatter::kReturned), 2);
  EXPECT_EQ(static_cast<int>(OneSidedOperation::kGet), 2);
  EXPECT_EQ(static_cast<int>(OneSidedOperation::kFetch), 3);
  EXPECT_EQ(static_cast<int>(OneSidedOperation::kCompareSwap), 6);
  EXPECT_EQ(static_cast<int>(OneSidedOperation::kXor), 10);
  EXPECT_EQ(static_cast<int>(OneSidedOperation::kLongGet), 12);
  EXPECT_EQ(static_cast<int>(OneSidedOperation::kAccumulate), 13);
  EXPECT_EQ(static_cast<int>(SignalUpdate::kAdd), 2);
  EXPECT_EQ(static_cast<int>(RtrState::kOut), 1);
  EXPECT_EQ(static_cast<int>(RtrState::kToWithdraw), 2);
  EXPECT_EQ(static_cast<int>(RtrState::kWithdrawing), 3);
  EXPECT_EQ(static_cast<int>(TransferState::kReleased), 4);
  EXPECT_EQ(static_cast<int>(RequestState::kMatched), 8);
  EXPECT_EQ(static_cast<int>(RequestKind::kMatch), 3);
  EXPECT_EQ(static_cast<int>(MatchState::kUnexpected), 2);
  EXPECT_EQ(static_cast<int>(PairState::kFailed), 2);
  EXPECT_EQ(static_cast<int>(SendMode::kSynchronous), 2);
  EXPECT_EQ(static_cast<int>(LaneState::kOpen), 1);
  EXPECT_EQ(static_cast<int>(CellState::kInUse), 1);
  EXPECT_EQ(static_cast<int>(RingKind::kNop), 1);
  EXPECT_EQ(static_cast<int>(RingKind::kCounterAdd), 2);
  EXPECT_EQ(static_cast<int>(RingKind::kCounterWait), 3);
  EXPECT_EQ(static_cast<int>(RingKind::kStart), 4);
  EXPECT_EQ(static_cast<int>(RingKind::kPut), 5);
  EXPECT_EQ(static_cast<int>(RingKind::kGet), 6);
  EXPECT_EQ(static_cast<int>(RingKind::kPutValue), 7);
  EXPECT_EQ(static_cast<int>(RingKind::kAtomic), 8);
  EXPECT_EQ(static_cast<int>(RingKind::kFence), 9);
  EXPECT_EQ(static_cast<int>(RingKind::kSignal), 10);
  EXPECT_EQ(kRingInOrder, 1);
}

}  // namespace
}  // namespace ferry::shm
