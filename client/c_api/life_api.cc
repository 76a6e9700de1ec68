// The C API (ferry.h) over client/api: joining and leaving a job, facts of it, counters. Messages
// are in message_api.cc, memory in memory_api.cc. It only checks arguments and turns codes into
// sentences.
#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "client/api/front_end.h"
#include "client/api/front_end_life.h"
#include "client/bootstrap/crash_report.h"
#include "client/bootstrap/job_life.h"
#include "client/bootstrap/launched_task.h"
#include "client/bootstrap/pmi_job.h"
#include "client/c_api/last_error.h"
#include "client/c_api/running.h"
#include "client/rank/client.h"
#include "common/library_words.h"
#include "common/version_text.h"
#include "config/environment.h"
#include "gpu_backends/loader/late_vendors.h"
#include "gpu_backends/loader/loader.h"
#include "include/ferry/ferry.h"
#include "shm/counters.h"

namespace ferry::client {

constinit Connection connection;

Status WhyNotRunning() {
  if (connection.is_forked.load(std::memory_order_relaxed)) {
    return {
        ErrorCode::kForked,
        "this process is a fork of one that had called ferry_init; start ranks with ferryrun, or "
        "call exec first"};
  }
  switch (connection.phase.load(std::memory_order_acquire)) {
    case Connection::Phase::kRunning:
      return {};
    case Connection::Phase::kBefore:
      return {ErrorCode::kNotInitialized, "call ferry_init first"};
    case Connection::Phase::kAfter:
      return {ErrorCode::kNotInitialized, "ferry_finalize was called"};
  }
  return {};
}

StatusOr<Client*> Running() {
  FERRY_RETURN_IF_ERROR(CheckRunning());
  return connection.client;
}

Status CheckRank(int rank, bool any_allowed) {
  if (rank >= 0 && static_cast<uint32_t>(rank) < connection.client->size()) {
    return {};
  }
  if (any_allowed && rank == FERRY_ANY_SOURCE) {
    return {};
  }
  return {ErrorCode::kInvalidRank, "rank " + std::to_string(rank) + " is not between 0 and " +
                                       std::to_string(connection.client->size() - 1) +
                                       (any_allowed ? ", nor FERRY_ANY_SOURCE" : "")};
}

namespace {

int ReportFailure(ErrorCode error) {
  connection.client
      ->HearOfDeaths();  // a call that is refused because its peer is dead has not waited
  return Fail(connection.client->Explain(error));
}

}  // namespace

int Report(ErrorCode error) {
  return error == ErrorCode::kOk ? FERRY_SUCCESS : ReportFailure(error);
}

}  // namespace ferry::client

namespace {

using ferry::ErrorCode;
using ferry::Status;
using ferry::client::CheckAlone;
using ferry::client::CheckRank;
using ferry::client::CheckRunning;
using ferry::client::Client;
using ferry::client::connection;
using ferry::client::Fail;
using ferry::client::HasTerminal;
using ferry::client::IsRunning;
using ferry::client::JobLife;
using ferry::client::PmiJob;
using ferry::client::Report;
using Phase = ferry::client::Connection::Phase;

// Front ends that have joined and not left; and whether the first of them has made the connection.
int front_ends = 0;
bool is_front_ends_own = false;
// The job of a rank that another launcher started. It is never destroyed at exit: the server must
// see that a rank ended without ferry_finalize.
std::unique_ptr<PmiJob>& pmi_job = *new std::unique_ptr<PmiJob>();

// Says how a process that belongs to no job yet gets one: not at all, or by making a job of its
// own.
enum class Starter { kNone, kItself };

void WarnOfUnknownVariables() {
  for (const std::string& sentence :
       ferry::config::UnknownVariables(ferry::config::ProcessEnvironment())) {
    ferry::SayToUser(-1, "warning: " + sentence);
  }
}

// Opens the GPU backend that the options name. kConfiguration for one that this build does not
// have.
ferry::StatusOr<std::unique_ptr<ferry::gpu::BackendRegistry>> OpenBackends(
    const ferry::config::Options& options) {
  auto backend = ferry::gpu::OpenProgramsBackend(options);
  FERRY_RETURN_IF_ERROR(backend.status());
  auto registry = std::make_unique<ferry::gpu::BackendRegistry>();
  const bool is_vendors = (*backend)->is_vendors();
  FERRY_RETURN_IF_ERROR(registry->Add(std::move(*backend)));
  if (!is_vendors) {
    registry->SetLate(std::make_unique<ferry::gpu::LateVendors>());
  }
  return registry;
}

// Tells the ferryrun that started this rank, before the other ranks fail because of it, so that it
// knows whose end counts: another one's, if this rank can know of one.
void TellLauncherOfEnd(int exit_code, bool is_exit) {
  JobLife& life = JobLife::Instance();
  if (!is_exit) {
    life.HearOfEnd(connection.client->poison());
    for (uint32_t rank = 0; rank < connection.client->size(); ++rank) {
      life.HearOfEnd(connection.client->PeerState(rank));
    }
  }
  life.EndJob(exit_code, is_exit);
}

// For all ranks, of which this process is one; or, outside of a job, for itself.
[[noreturn]] void EndJob(int exit_code, bool is_exit) {
  if (CheckRunning().ok()) {
    TellLauncherOfEnd(exit_code, is_exit);
    if (pmi_job != nullptr) {
      pmi_job->Abort(exit_code);
    }
    connection.client->Abort(exit_code);
  }
  std::_Exit(exit_code);
}

int Initialize(int required, int* provided, Starter starter) {
  if (required < FERRY_THREAD_SINGLE || required > FERRY_THREAD_MULTIPLE) {
    return Fail(ErrorCode::kInvalidArgument, "the thread level is not one of FERRY_THREAD_*");
  }
  if (connection.phase.load() != Phase::kBefore) {
    return Fail(ErrorCode::kAlreadyInitialized, "ferry_init was called before in this process");
  }
  auto options = ferry::config::OptionsFromEnvironment(ferry::config::ProcessEnvironment());
  if (!options.ok()) {
    return Fail(options.status());
  }
  const bool told = !options->job_id.empty();  // by ferryrun
  std::unique_ptr<PmiJob> made;
  const bool has_launcher = PmiJob::HasLauncher(ferry::config::ProcessEnvironment());
  if (!told && !has_launcher) {
    if (const Status alone = CheckAlone(ferry::config::ProcessEnvironment(), HasTerminal());
        !alone.ok()) {
      return Fail(alone);
    }
  }
  if (!told && (has_launcher || starter == Starter::kItself)) {
    auto started = has_launcher ? PmiJob::Start(&*options) : PmiJob::StartAlone(&*options);
    if (!started.ok()) {
      return Fail(started.status());
    }
    made = std::move(*started);
  }
  if (!told && options->rank == 0) {
    WarnOfUnknownVariables();
  }
  auto backends = OpenBackends(*options);
  if (!backends.ok()) {
    return Fail(backends.status());
  }
  options->gpu_backend = (*backends)->List().front()->name();  // instead of "auto"
  if (options->backtrace == "on") {
    ferry::client::ReportCrashes(options->job_id.empty() ? -1
                                                         : static_cast<int64_t>(options->rank));
  }
  JobLife& life = JobLife::Instance();
  life.SetPipe(options->abort_fd, static_cast<uint32_t>(options->rank));
  life.Enter();
  auto joined = Client::Join(*options, required == FERRY_THREAD_MULTIPLE, std::move(*backends));
  if (!joined.ok()) {
    life.HearOfEnd(joined.status().code());
    life.Leave();
    return Fail(joined.status());
  }
  connection.client = joined->release();
  pmi_job = std::move(made);
  pthread_atfork(nullptr, nullptr, [] {
    connection.is_forked.store(true, std::memory_order_relaxed);
    // Threads that its end would wait for do not exist in a child: it stays as it is.
    connection.client = nullptr;
  });
  if (provided != nullptr) {
    *provided = required;
  }
  ferry::client::ShowSession(connection.client);
  connection.phase.store(Phase::kRunning, std::memory_order_release);
  return FERRY_SUCCESS;
}

}  // namespace

extern "C" {

const char* ferry_version(void) {
  static const std::string& text = *new std::string(ferry::VersionText());
  return text.c_str();
}

const char* ferry_error_string(int code) {
  return ferry::ErrorCodeText(static_cast<ErrorCode>(code));
}

const char* ferry_last_error(void) { return ferry::client::LastError(); }

int ferry_init(int required, int* provided) {
  return Initialize(required, provided, Starter::kNone);
}

FERRY_API void ferry_front_end_exit(int exit_code) { EndJob(exit_code, true); }

FERRY_API void ferry_front_end_begin(const char* entry, const char* exit) {
  JobLife::Instance().SetCalls(entry, exit);
  if (IsRunning()) {  // else Initialize says it
    JobLife::Instance().Enter();
  }
}

FERRY_API void ferry_front_end_end(void) {
  if (!connection.is_forked.load(std::memory_order_relaxed)) {
    JobLife::Instance().Leave();
  }
}

FERRY_API int ferry_front_end_join(int required) {
  if (!IsRunning()) {
    if (const int error = Initialize(required, nullptr, Starter::kItself); error != FERRY_SUCCESS) {
      return error;
    }
    is_front_ends_own = true;
  } else if (required == FERRY_THREAD_MULTIPLE) {
    connection.client->KeepThreads();
  }
  front_ends++;
  return FERRY_SUCCESS;
}

FERRY_API int ferry_front_end_leave(void) {
  if (front_ends == 1 && is_front_ends_own) {
    if (const int error = ferry_finalize(); error != FERRY_SUCCESS) {
      return error;
    }
  }
  front_ends--;
  return FERRY_SUCCESS;
}

int ferry_finalize(void) {
  if (Status status = CheckRunning(); !status.ok()) {
    return Fail(status);
  }
  const Status status = [] {
    ferry::client::NamedCall call(JobLife::Instance().exit());
    const ferry::client::CallScope scope(connection.client->calls, &call);
    return connection.client->Leave();
  }();
  if (status.code() == ErrorCode::kInvalidRequest) {
    return Fail(status);
  }
  connection.phase.store(Phase::kAfter, std::memory_order_release);
  ferry::client::ShowSession(nullptr);
  const int result = status.ok() ? FERRY_SUCCESS : Fail(status);
  delete std::exchange(connection.client, nullptr);
  JobLife::Instance().Leave();
  if (pmi_job != nullptr && status.ok()) {
    (void)pmi_job->Leave();  // an error of the server's comes too late to be reported
  }
  pmi_job.reset();
  return result;
}

int ferry_initialized(void) { return CheckRunning().ok() ? 1 : 0; }

void ferry_abort(int exit_code) { EndJob(exit_code, false); }

int ferry_rank(void) {
  return CheckRunning().ok() ? static_cast<int>(connection.client->rank()) : -1;
}

int ferry_size(void) {
  return CheckRunning().ok() ? static_cast<int>(connection.client->size()) : -1;
}

int ferry_node_of(int rank) {
  return CheckRunning().ok() && CheckRank(rank, false).ok()
             ? connection.client->NodeOf(static_cast<uint32_t>(rank))
             : -1;
}

int ferry_barrier(void) {
  if (Status status = CheckRunning(); !status.ok()) {
    return Fail(status);
  }
  ferry::client::NamedCall call(ferry::shm::CallName::kFerryBarrier);
  const ferry::client::CallScope scope(connection.client->calls, &call);
  return Report(connection.client->Barrier());
}

int ferry_counter_count(void) { return static_cast<int>(ferry::shm::kStatisticCount); }

const char* ferry_counter_name(int index) {
  return index < 0 || index >= ferry_counter_count()
             ? nullptr
             : ferry::shm::StatisticLabels()[static_cast<size_t>(index)].name;
}

uint64_t ferry_counter_value(int index) {
  return CheckRunning().ok() && index >= 0 && index < ferry_counter_count()
             ? connection.client->Counter(static_cast<uint32_t>(index))
             : 0;
}

FERRY_API ferry::client::FrontEnd* ferry_front_end(uint32_t version) {
  return version == ferry::client::kFrontEndVersion && CheckRunning().ok() ? connection.client
                                                                           : nullptr;
}

}  // extern "C"
