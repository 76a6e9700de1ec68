#include "tools/ferryrun/job_hosts.h"

#include <algorithm>

namespace ferry::tools {

std::vector<pid_t> JobHosts::pids() const {
  std::vector<pid_t> pids;
  for (const Host& host : hosts_) {
    pids.push_back(host.remote->pid());
  }
  return pids;
}

std::vector<RemoteHost*> JobHosts::Open() const {
  std::vector<RemoteHost*> open;
  for (const Host& host : hosts_) {
    if (!host.over) {
      open.push_back(host.remote);
    }
  }
  return open;
}

void JobHosts::GiveUp(const RemoteHost* host) {
  for (Host& one : hosts_) {
    one.over |= one.remote == host;
  }
}

void JobHosts::SendToAll(FrameKind kind, uint32_t rank, std::string_view payload) const {
  for (const Host& host : hosts_) {
    host.remote->Send(kind, rank, payload);
  }
}

void JobHosts::AppendInterests(bool reads, std::vector<pollfd>* fds) const {
  for (const Host& host : hosts_) {
    fds->push_back(reads ? host.remote->WordsInterest() : pollfd{-1, 0, 0});
    fds->push_back(host.remote->RoomInterest());
  }
}

void JobHosts::OnReady(const pollfd* fds) const {
  for (size_t i = 0; i < hosts_.size(); ++i) {
    if (fds[2 * i].revents != 0 || fds[2 * i + 1].revents != 0) {
      hosts_[i].remote->Advance();
    }
  }
}

// Of all hosts, since one may have received for another.
void JobHosts::TakeFrames(const std::function<void(RemoteHost*, const Frame&)>& take) {
  for (Host& host : hosts_) {
    StatusOr<std::optional<Frame>> frame = host.remote->Next();
    while (frame.ok() && frame->has_value()) {
      take(host.remote, **frame);
      frame = host.remote->Next();
    }
    host.fault = frame.status();
  }
}

std::optional<JobHosts::Lost> JobHosts::NextLost() {
  const auto first = std::find_if(hosts_.begin(), hosts_.end(), [](const Host& host) {
    return !host.over && (!host.fault.ok() || host.remote->ended());
  });
  if (first == hosts_.end()) {
    return std::nullopt;
  }
  Lost lost{.hosts = {}, .fault = first->fault};
  for (auto host = first; host != hosts_.end(); ++host) {
    const bool is_lost_too = first->fault.ok() && !host->over && host->fault.ok() &&
                             host->remote->ended() && first->remote->IsLostWith(*host->remote);
    if (host == first || is_lost_too) {
      host->over = true;
      lost.hosts.push_back(host->remote);
    }
  }
  return lost;
}

std::string JobHosts::Lost::Sentence(const std::vector<const RemoteHost*>& named) const {
  if (!fault.ok()) {
    return fault.message();
  }
  std::string names;
  for (const RemoteHost* host : named) {
    names += (names.empty() ? "" : ", ") + host->name();
  }
  return (named.size() == 1 ? "host " + names + " is lost: " : "hosts " + names + " are lost: ") +
         hosts.front()->LastWords();
}

}  // namespace ferry::tools
