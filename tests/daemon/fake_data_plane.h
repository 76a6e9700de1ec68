// A data plane that only records its calls, one line each, such as "RankEnded j 1 14".
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/unique_fd.h"
#include "daemon/plane/data_plane.h"
#include "shm/daemon_trace.h"
#include "tests/support/patience.h"

namespace ferry::daemon {

class FakeDataPlane final : public DataPlane {
 public:
  // For each guest another one.
  std::vector<std::byte> FabricAddressFor(uint64_t guest) const override {
    std::vector<std::byte> address(sizeof(guest));
    std::memcpy(address.data(), &guest, sizeof(guest));
    return address;
  }
  std::vector<NicStatistics> Nics() const override {
    NicStatistics nic;
    nic.provider = "fake";
    nic.domain = "fake0";
    nic.writes = 7;
    nic.deferred_busy = 3;
    NicStatistics second;
    second.domain = "fake1";
    second.writes = 8;
    second.deferred_busy = 4;
    return {nic, second};
  }
  RegistrationStatistics Registered() const override { return {.entries = 3, .hits = 5}; }
  TurnTimes TurnDurations() const override {
    TurnClock clock;
    for (const uint64_t ns : {900ULL, 2'000ULL, 3'999ULL, 3'599'999'993'101ULL}) {
      clock.Count(ns);
    }
    return clock.Read();
  }
  PlaceReport PlaceOf(const Session&) const override { return {"0-3", nearest_nic, 10}; }
  std::vector<FaultReport> Faults(bool release) override {
    Record(release ? "Faults release" : "Faults");
    return {{"rndv_get.read", 2, "stall", 1, "waits"}};
  }
  Status StartTrace() override { return tracer_.Start(progress::TraceRing(4), 1'000); }
  StatusOr<TraceDump> StopTrace() override { return tracer_.Stop(2'000); }
  void TraceJob(const std::string& job_id,
                std::shared_ptr<shm::DaemonTraceWriter> events) override {
    Record("TraceJob " + job_id);
    std::lock_guard lock(mutex_);
    job_traces_[job_id] = std::move(events);
  }
  // The ring of a job's events that it was given last; null: none.
  std::shared_ptr<shm::DaemonTraceWriter> JobTrace(const std::string& job_id) {
    std::lock_guard lock(mutex_);
    return job_traces_[job_id];
  }
  RankReport Inspect(const std::string&, uint32_t) const override {
    std::lock_guard lock(mutex_);
    return rank_report_;
  }
  Status AddJob(const JobPlan& plan) override {
    Record("AddJob " + plan.job_id);
    std::lock_guard lock(mutex_);
    if (remembers_) {
      plan_ = plan;
    }
    return {};
  }
  void RemoveJob(const std::string& job_id) override { Record("RemoveJob " + job_id); }
  Status AddSession(std::shared_ptr<Session> session) override {
    Record("AddSession " + session->job_id + " " + std::to_string(session->rank));
    return {};
  }
  void RemoveSession(const std::string& job_id, uint32_t rank, Departure departure) override {
    Record("RemoveSession " + job_id + " " + std::to_string(rank));
    departure.said_last();
    departure.let_go();
  }
  void ReleaseSession(const std::string&, uint32_t) override {}
  Status ImportRegion(const Session& session, const std::shared_ptr<Region>& region) override {
    Record("ImportRegion " + session.job_id + " " + std::to_string(session.rank) + " " +
           std::to_string(region->id));
    std::lock_guard lock(mutex_);
    return import_status_;
  }
  Status AddRegion(const std::string& job_id, uint32_t rank,
                   std::shared_ptr<const Region> region) override {
    Record("AddRegion " + job_id + " " + std::to_string(rank) + " " + std::to_string(region->id));
    std::lock_guard lock(mutex_);
    return region_status_;
  }
  // Done at once, unless it is stuck.
  void RemoveRegion(const std::string& job_id, uint32_t rank, uint32_t region,
                    std::function<void()> done) override {
    Record("RemoveRegion " + job_id + " " + std::to_string(rank) + " " + std::to_string(region));
    AnswerUnlessStuck(std::move(done));
  }
  // Likewise.
  void ReachWindows(const std::string& job_id, uint32_t rank, std::vector<NicWindow> windows,
                    std::function<void(const Status&)> done) override {
    Record("ReachWindows " + job_id + " " + std::to_string(rank) + " " +
           std::to_string(windows.size()));
    AnswerUnlessStuck([this, done = std::move(done)] {
      std::unique_lock lock(mutex_);
      const Status status = reach_status_;
      lock.unlock();
      done(status);
    });
  }
  Status AddPair(const PairPlan& plan) override {
    Record("AddPair " + NameText(plan.name) + (plan.is_send ? " send" : " receive") +
           " peer_number " + std::to_string(plan.peer_number) + " bytes " +
           std::to_string(plan.size_bytes) + " cells " + std::to_string(plan.cell_count));
    return {};
  }
  void EndPair(const PairName& name, uint64_t rounds, ErrorCode error) override {
    Record("EndPair " + NameText(name) + " " + std::to_string(rounds) + " " + Number(error));
  }
  void RemovePair(const PairName& name) override { Record("RemovePair " + NameText(name)); }
  Status AddNode(const std::string& job_id, uint32_t node, const NodeRoute& route) override {
    {
      std::lock_guard lock(mutex_);
      if (remembers_) {
        routes_.push_back(route);
      }
    }
    Record("AddNode " + job_id + " " + std::to_string(node));
    return {};
  }
  void NodeReturned(const std::string& job_id, uint32_t node) override {
    Record("NodeReturned " + job_id + " " + std::to_string(node));
  }
  void RankEnded(const std::string& job_id, uint32_t rank, ErrorCode error) override {
    Record("RankEnded " + job_id + " " + std::to_string(rank) + " " + Number(error));
  }
  void RanksEnded(const std::string& job_id, std::span<const RankEnd> ends) override {
    if (ends.size() > 1) {
      Record("RanksEnded " + job_id + " " + std::to_string(ends.size()));
    }
    DataPlane::RanksEnded(job_id, ends);
  }
  void NodeFailed(uint64_t incarnation, ErrorCode error) override {
    Record("NodeFailed " + std::to_string(incarnation) + " " + Number(error));
  }
  void PartRanks(const std::string& job_id, uint32_t rank, uint32_t peer) override {
    Record("PartRanks " + job_id + " " + std::to_string(rank) + " " + std::to_string(peer));
  }
  bool AreParted(const std::string&, uint32_t, uint32_t) override { return true; }
  bool AreRejoined(const std::string& job_id, uint32_t rank, uint32_t peer) override {
    Record("AreRejoined " + job_id + " " + std::to_string(rank) + " " + std::to_string(peer));
    return true;
  }
  void PoisonJob(const std::string& job_id, ErrorCode error) override {
    Record("PoisonJob " + job_id + " " + Number(error));
  }
  int CounterPages(uint32_t nic) const override { return nic == 0 ? counter_pages_.get() : -1; }
  // Of the NIC 0.
  void set_counter_pages(UniqueFd pages) { counter_pages_ = std::move(pages); }
  // Answers at once, unless it is stuck.
  void Probe(std::function<void()> answer) override {
    Record("Probe");
    AnswerUnlessStuck(std::move(answer));
  }
  bool Idle() const override { return true; }

  // ---- For tests ----
  // From now on it keeps nothing of what it is told: where there are many of them.
  void Forget() {
    std::lock_guard lock(mutex_);
    remembers_ = false;
  }
  static std::string NameText(const PairName& name) {
    return name.job_id + " " + std::to_string(name.rank) + " " + std::to_string(name.number);
  }
  static std::string Number(ErrorCode error) { return std::to_string(static_cast<int>(error)); }
  std::vector<std::string> calls() const {
    std::lock_guard lock(mutex_);
    return calls_;
  }
  size_t Count(const std::string& start) const {
    std::lock_guard lock(mutex_);
    return CountLocked(start);
  }
  // Waits until `count` calls that begin with `start` were made; false after 20 s.
  bool WaitFor(const std::string& start, size_t count = 1) const {
    std::unique_lock lock(mutex_);
    return called_.wait_for(lock, tests::kPatience, [&] { return CountLocked(start) >= count; });
  }
  JobPlan plan() const {
    std::lock_guard lock(mutex_);
    return plan_;
  }
  std::vector<NodeRoute> routes() const {
    std::lock_guard lock(mutex_);
    return routes_;
  }
  void set_rank_report(RankReport report) {
    std::lock_guard lock(mutex_);
    rank_report_ = std::move(report);
  }
  bool ReleaseGpus() override { return gpu_looks > 0 && --gpu_looks > 0; }
  // It takes so many looks until it reports its devices as given back.
  std::atomic<int> gpu_looks{0};
  std::string nearest_nic = "fake0";  // to every rank
  void set_import_status(Status status) {
    std::lock_guard lock(mutex_);
    import_status_ = std::move(status);
  }
  void set_region_status(Status status) {
    std::lock_guard lock(mutex_);
    region_status_ = std::move(status);
  }
  void set_reach_status(Status status) {
    std::lock_guard lock(mutex_);
    reach_status_ = std::move(status);
  }
  void set_stuck(bool stuck) {
    std::vector<std::function<void()>> answers;
    {
      std::lock_guard lock(mutex_);
      stuck_ = stuck;
      if (!stuck) {
        answers.swap(unanswered_);
      }
    }
    for (const auto& answer : answers) {
      answer();
    }
  }

 private:
  size_t CountLocked(const std::string& start) const {
    return static_cast<size_t>(std::count_if(
        calls_.begin(), calls_.end(), [&](const auto& call) { return call.starts_with(start); }));
  }
  void AnswerUnlessStuck(std::function<void()> answer) {
    std::unique_lock lock(mutex_);
    if (stuck_) {
      unanswered_.push_back(std::move(answer));
      return;
    }
    lock.unlock();
    answer();
  }
  void Record(std::string call) {
    std::lock_guard lock(mutex_);
    if (!remembers_) {
      return;
    }
    calls_.push_back(std::move(call));
    called_.notify_all();
  }

  mutable std::mutex mutex_;
  mutable std::condition_variable called_;
  std::vector<std::string> calls_;
  std::vector<NodeRoute> routes_;
  JobPlan plan_;
  Status region_status_;
  Status reach_status_;
  Status import_status_{ErrorCode::kUnsupported, "no streams here"};
  UniqueFd counter_pages_;
  bool stuck_ = false;
  bool remembers_ = true;
  std::vector<std::function<void()>> unanswered_;
  RankReport rank_report_;
  progress::Tracer tracer_;
  std::map<std::string, std::shared_ptr<shm::DaemonTraceWriter>> job_traces_;
};

}  // namespace ferry::daemon
