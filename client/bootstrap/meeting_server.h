// Rank 0's side of the meeting of ranks (environment_meeting.h): gathers what each rank puts, and
// tells it to all.
//
// It has no thread of its own: it serves while rank 0 is in Fence, which is whenever another rank
// waits. Strangers hold nothing up: one that says nothing is dropped after a while, and the one
// that came first is when there are too many; none hears a word before it has said Ferry's, nor
// more than a refusal before it has shown that it knows the secret.
//
// Calling thread: one at a time; Missing: any. Fence blocks until all ranks have come to it, or one
// has failed. Then all ranks that are there, or come in the next seconds, get the error that it
// returns.
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "client/bootstrap/meeting_place.h"
#include "client/bootstrap/meeting_stream.h"
#include "client/bootstrap/meeting_words.h"
#include "common/status.h"
#include "common/unique_fd.h"

namespace ferry::client {

class MeetingServer {
 public:
  // `stranger_ms`: how long a connection may take to show that it knows the secret.
  MeetingServer(const MeetingPlace& place, uint64_t stranger_ms);

  // Opens the sockets. kAlreadyExists: another process listens at one of them.
  Status Listen();
  // The port that it listens at, where it does.
  uint16_t port() const;

  // Waits for all ranks, and adds what they and this one have put to `table`.
  Status Fence(const MeetingPuts& own, MeetingTable* table);
  // Which ranks have not come to the fence that is under way, for the user.
  std::string Missing() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Stranger {
    MeetingStream stream;
    Clock::time_point until;
    std::string from;
    bool is_local;
  };
  struct Member {
    MeetingStream stream;
    std::string process;
    std::optional<MeetingPuts> puts;  // once it has come to the fence
    bool is_gone = false;
  };

  // Waits for something to happen on any connection, until then at most, and deals with it.
  void Serve(std::optional<Clock::time_point> until);
  void Accept(int listener, bool is_local);
  void Meet(UniqueFd connection, bool is_local);
  // Returns false once it is no stranger any more: it was admitted, or sent away.
  bool HearStranger(Stranger* stranger);
  void HearMember(uint32_t rank, Member* member);
  void Admit(Stranger* stranger, const MeetingHello& hello);
  void TakePuts(uint32_t rank, Member* member, std::string_view packet);
  void WatchHosts(bool are_watched);
  bool HaveAllCome() const;
  bool HasOutput() const;
  void SendTable(const MeetingPuts& own, MeetingTable* table);
  // Tells all ranks, also those that come a little later. Returns the failure.
  Status TellFailure();
  void Fail(ErrorCode code, const std::string& words);

  const MeetingPlace place_;
  const std::chrono::milliseconds stranger_time_;
  const Secret key_;
  UniqueFd local_;
  UniqueFd port_;
  std::list<Stranger> strangers_;
  std::map<uint32_t, Member> members_;
  Status failure_;
  uint32_t told_strangers_ = 0;  // of the failure
  mutable std::mutex mutex_;     // for the rest, about which other threads ask
  std::vector<bool> have_come_;  // to the fence, by rank
  uint64_t refused_ = 0;         // processes with another secret
  std::string last_refused_;
};

// Makes a socket of this name in the abstract namespace listen. kAlreadyExists: there is one.
StatusOr<UniqueFd> ListenLocally(const std::string& name);
// Calls a process of this user that listens at such a name. kNotFound: none does.
// kPermissionDenied: another user's does.
StatusOr<UniqueFd> CallLocally(const std::string& name);

}  // namespace ferry::client
