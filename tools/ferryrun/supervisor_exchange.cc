// Ranks that do not use Ferry: what their servers here and on other hosts have to say.
#include <signal.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "common/number_text.h"
#include "tools/ferryrun/rank_servers.h"
#include "tools/ferryrun/supervisor.h"

namespace ferry::tools {
namespace {

// Returns the notice that a rank of Ferry would send of itself.
RankNotice NoticeOf(RankNotice::Kind kind, uint32_t rank) {
  RankNotice notice{};
  notice.kind = kind;
  notice.rank = rank;
  std::strcpy(notice.entry, "MPI_Init");
  std::strcpy(notice.exit, "MPI_Finalize");
  return notice;
}

}  // namespace

void Supervisor::Serve(RankServers* servers, std::vector<uint32_t> machine_of_rank) {
  servers_ = servers;
  hub_.emplace(std::move(machine_of_rank));
}

void Supervisor::OnServers() {
  servers_->Serve();
  for (std::vector<ExchangeMessage> words = servers_->TakeWords(); !words.empty();
       words = servers_->TakeWords()) {
    for (const ExchangeMessage& message : words) {
      OnExchange(0, message);
    }
  }
}

void Supervisor::OnExchangeFrame(const RemoteHost& host, const Frame& frame) {
  const StatusOr<ExchangeMessage> message = ReadExchange(frame.payload);
  for (size_t i = 0; message.ok() && i < hosts_.size(); ++i) {
    if (&hosts_[i] == &host) {
      OnExchange(static_cast<uint32_t>(i) + 1, *message);
    }
  }
  if (servers_ != nullptr) {
    OnServers();  // which may have something to say to that
  }
}

void Supervisor::OnExchange(uint32_t machine, const ExchangeMessage& message) {
  switch (message.kind) {
    case ExchangeMessage::Kind::kMet:
      return OnMet(message);
    case ExchangeMessage::Kind::kLeft:
      return OnNotice(NoticeOf(RankNotice::Kind::kLeaves, message.rank));
    case ExchangeMessage::Kind::kAborts: {
      RankNotice notice = NoticeOf(RankNotice::Kind::kAborts, message.rank);
      notice.exit_code = NumberIn<int>(message.data).value_or(1);
      return OnNotice(notice);
    }
    case ExchangeMessage::Kind::kFault:
      return OnFault(message);
    case ExchangeMessage::Kind::kShut:
      shut_.insert(message.rank);
      return;
    default:
      break;
  }
  for (const ExchangeHub::Outgoing& out : hub_->Take(machine, message)) {
    if (out.machine == 0 && servers_ != nullptr) {
      servers_->Take(out.message);
    } else if (out.machine > 0 && out.machine <= hosts_.size()) {
      hosts_[out.machine - 1].Send(FrameKind::kExchange, 0, ToText(out.message));
    }
  }
}

void Supervisor::OnMet(const ExchangeMessage& message) {
  if (ranks_.NoteOtherMeeting() && settings_.ranks > 1) {
    Say("the ranks do not use Ferry, but another MPI library" +
        (message.data.empty() ? std::string(" (ferryrun knows none of those that are loaded)")
                              : ", " + message.data) +
        "; they meet by ferryrun's " + message.why + " server, and run as one job of that library");
  }
  OnNotice(NoticeOf(RankNotice::Kind::kEnters, message.rank));
}

// Programs of MPICH shut the socket when they finalize, for those that follow in the slot, too.
std::string Supervisor::WhyWithoutServer(uint32_t rank) const {
  return shut_.contains(rank) ? "; before that, a program of MPICH had shut the way to ferryrun's "
                                "PMI-1 server, as they "
                                "do, for programs that follow it in the slot"
                              : "";
}

void Supervisor::OnFault(const ExchangeMessage& message) {
  if (phase_ != Phase::kRunning) {
    return;  // what is being ended need not speak well
  }
  Decide(1);
  Say(message.why + "; ending the job");
  Stop(SIGTERM);
}

}  // namespace ferry::tools
