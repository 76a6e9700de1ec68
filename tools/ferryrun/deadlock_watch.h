// Tells of a deadlock among the job's ranks without being asked: asks the daemons here, again and
// again, for circles of ranks that wait for each other and can never go on (daemon/admin/
// why_graph.h). A daemon looks only at ranks that have slept in Ferry for seconds.
//
// A circle is told by the daemon of its rank with the smallest number: so each is told once, though
// every host of a job has a watch of its own.
//
// Main thread; nothing blocks. The questions are asked by a thread of its own, which signals stay
// away from.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "common/unique_fd.h"
#include "tools/admin/daemon_client.h"
#include "tools/ferryrun/daemons.h"

namespace ferry::tools {

class DeadlockWatch {
 public:
  // Asks these daemons, whose clients must outlive this, every so many seconds. Null: there is no
  // daemon here, or the time is 0, or there is no descriptor or thread left for it, which is no
  // reason to fail.
  static std::unique_ptr<DeadlockWatch> Start(std::span<const ServingDaemon> daemons,
                                              std::string job_id, uint64_t interval_s);
  DeadlockWatch(const DeadlockWatch&) = delete;
  DeadlockWatch& operator=(const DeadlockWatch&) = delete;
  ~DeadlockWatch();  // breaks a question off

  // Readable when there is something to tell.
  int fd() const { return event_.get(); }
  // Sentences, each circle's once.
  std::vector<std::string> Take();

 private:
  DeadlockWatch(std::vector<const LauncherClient*> clients, std::string job_id,
                std::chrono::seconds interval, UniqueFd event);
  void Run();
  // Returns false if it is to stop.
  bool Pause();
  void Ask(const LauncherClient& client);
  void Note(const control::RankWait& wait);

  const std::vector<const LauncherClient*> clients_;
  const std::string job_id_;
  const std::chrono::seconds interval_;
  const UniqueFd event_;
  std::set<std::set<uint32_t>> told_;  // the ranks of each circle; of the thread alone

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  grpc::ClientContext* question_ = nullptr;  // under way
  std::vector<std::string> sentences_;
  std::thread thread_;
};

}  // namespace ferry::tools
