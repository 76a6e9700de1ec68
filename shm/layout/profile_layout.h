// The figures that a measured rank writes of itself (ferryrun --report, --trace): a memfd, which
// its ferryd keeps beyond the rank's end and hands out by JobProfile (proto/control.proto).
//
// Written by the rank, whose threads take turns; read from copies, by those who trust none of it
// (shm/profile_reader.h). A rank that is killed leaves what it has written so far. Pages that it
// has not touched hold zeros, and cost nothing.
#pragma once

#include <cstdint>

#include "shm/layout/call_layout.h"
#include "shm/layout/layout_check.h"
#include "shm/layout/session_layout.h"

namespace ferry::shm {

inline constexpr uint64_t kProfileMagic = 0x454c'4946'4f52'5046ULL;  // "FPROFILE" in memory order
inline constexpr uint32_t kProfileVersion = 2;

inline constexpr uint32_t kProfilePowers = 64;      // sizes by powers of two
inline constexpr uint32_t kProfileCalls = 4096;     // power of two
inline constexpr uint32_t kProfileGroups = 64;      // communicators whose names are known
inline constexpr uint32_t kProfileArrivals = 4096;  // collectives
inline constexpr uint32_t kProfileFiles = 256;      // power of two
inline constexpr uint32_t kProfileFileNameBytes = 176;
inline constexpr uint32_t kMostProfilePeers = 1U << 14;  // of larger jobs: the first ranks

// Parts lie one behind the other: the header, the profile, the trace. A part of 0 bytes is not
// there.
struct alignas(128) ProfileHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t rank;
  uint32_t job_size;
  uint32_t pid;
  uint64_t profile_offset;  // multiples of 128
  uint64_t profile_bytes;
  uint64_t trace_offset;
  uint64_t trace_bytes;
  uint64_t begin_ns;  // CLOCK_MONOTONIC, as all times here: when the rank had joined
  uint64_t end_ns;    // when it left in good order; 0: it has not
  uint32_t peer_count;
  uint32_t node;       // of the job
  uint32_t cpus;       // on which the rank may run
  uint32_t node_cpus;  // that are online
  uint32_t node_ranks;
  uint32_t is_crowded;  // more ranks than cores
  uint64_t reserved[18];
};
FERRY_ASSERT_LAYOUT(ProfileHeader, 256);
FERRY_ASSERT_OFFSET(ProfileHeader, profile_offset, 24);
FERRY_ASSERT_OFFSET(ProfileHeader, trace_offset, 40);
FERRY_ASSERT_OFFSET(ProfileHeader, begin_ns, 56);
FERRY_ASSERT_OFFSET(ProfileHeader, peer_count, 72);

struct alignas(128) ProfileTotals {
  uint64_t last_ns;    // when the last call ended
  uint64_t ferry_ns;   // in calls, those of all threads together
  uint64_t waited_ns;  // of that, in waits
  uint64_t calls;
  uint64_t polls;      // looks for a message or a completion that found nothing, outside waits
  uint64_t polled_ns;  // between such looks that follow each other within 100 us
  uint64_t last_poll_ns;
  uint64_t unlisted_calls;  // that found no place among the calls
  uint64_t unlisted_ns;
  uint64_t arrival_stride;  // collectives whose number is a multiple of it have been kept
  uint64_t arrival_count;
  uint64_t migrations;           // changes of CPU, seen at the ends of calls that waited
  uint64_t unlisted_file_calls;  // on files that found no place among the files
  uint64_t reserved[3];
};
FERRY_ASSERT_LAYOUT(ProfileTotals, 128);

// Messages whose size has its highest bit at index i - 1; index 0 is the empty ones.
struct ProfileSizes {
  uint64_t sent[kProfilePowers];
  uint64_t received[kProfilePowers];
};
FERRY_ASSERT_LAYOUT(ProfileSizes, 1024);

// Of all calls of one name, communicator and peer.
struct ProfileCall {
  uint64_t count;  // 0: the place is free. Stored last
  uint16_t name;   // CallName
  uint16_t inner;  // of completions; else 0
  uint32_t group;  // as CallRecordLayout; 0xffffffff: none
  int32_t peer;    // a rank of the job, kCallNoRank or kCallAnyRank
  uint32_t reserved0;
  uint64_t bytes;
  uint64_t time_ns;
  uint64_t waited_ns;
  uint64_t longest_ns;
  uint64_t waits;
};
FERRY_ASSERT_LAYOUT(ProfileCall, 64);
FERRY_ASSERT_OFFSET(ProfileCall, name, 8);
FERRY_ASSERT_OFFSET(ProfileCall, peer, 16);
FERRY_ASSERT_OFFSET(ProfileCall, bytes, 24);

// Messages to and from one rank, by all paths, those of collectives included.
struct ProfilePeer {
  uint64_t sent;
  uint64_t sent_bytes;
  uint64_t received;
  uint64_t received_bytes;
  uint64_t late_sends;       // receives that waited for a message of that rank
  uint64_t late_send_ns;     // in these
  uint64_t late_receives;    // sends that waited for that rank to receive
  uint64_t late_receive_ns;  // in these
};
FERRY_ASSERT_LAYOUT(ProfilePeer, 64);

struct ProfileGroup {
  uint32_t group;
  uint32_t is_used;
  char name[kCallGroupNameBytes];  // need not end with a 0
};
FERRY_ASSERT_LAYOUT(ProfileGroup, 40);

// A blocking collective. Ranks keep those whose number in their communicator is a multiple of a
// power of two, which grows, so that the collectives of several ranks can be compared.
struct ProfileArrival {
  uint64_t number;
  uint64_t enter_ns;
  uint64_t leave_ns;
  uint64_t bytes;
  uint32_t group;
  uint16_t name;  // CallName; 0: none here
  uint16_t reserved0;
};
FERRY_ASSERT_LAYOUT(ProfileArrival, 40);

// Calls on a file by one name. Those that do not block count with their bytes, and with the time
// that the call itself took.
struct ProfileFile {
  uint64_t name_hash;  // 0: the place is free. Stored last
  uint64_t opens;
  uint64_t reads;
  uint64_t read_bytes;
  uint64_t writes;
  uint64_t written_bytes;
  uint64_t calls;  // all of them
  uint64_t time_ns;
  uint64_t waited_ns;  // for other ranks, or for the system
  uint64_t longest_ns;
  char name[kProfileFileNameBytes];  // from the root on, or its end; need not end with a 0
};
FERRY_ASSERT_LAYOUT(ProfileFile, 256);
FERRY_ASSERT_OFFSET(ProfileFile, calls, 48);
FERRY_ASSERT_OFFSET(ProfileFile, name, 80);

struct alignas(128) ProfileLayout {
  ProfileTotals totals;
  ProfileSizes sizes;
  alignas(128) ProfileCall calls[kProfileCalls];
  alignas(128) ProfileGroup groups[kProfileGroups];
  alignas(128) ProfileArrival arrivals[kProfileArrivals];
  alignas(128) ProfileFile files[kProfileFiles];
  // Behind it: ProfileHeader::peer_count ProfilePeers.
};
FERRY_ASSERT_OFFSET(ProfileLayout, sizes, 128);
FERRY_ASSERT_OFFSET(ProfileLayout, calls, 1152);
FERRY_ASSERT_OFFSET(ProfileLayout, groups, 263296);
FERRY_ASSERT_OFFSET(ProfileLayout, arrivals, 265856);
FERRY_ASSERT_OFFSET(ProfileLayout, files, 429696);

constexpr uint64_t ProfileBytes(uint32_t peers) {
  return sizeof(ProfileLayout) + (uint64_t{peers} * sizeof(ProfilePeer) + 127) / 128 * 128;
}

// Figures of the rank's session, which ferryd adds behind the memfd, at the offset that is the
// memfd's size.
struct ProfileAppendix {
  uint64_t counters[kCounterWords];   // shm/counters.h
  CallTotals totals[kMostCallNames];  // by CallName
};
static_assert(kIsSharedLayout<ProfileAppendix>);

}  // namespace ferry::shm
