// The C API (ferry.h) over client/api: joining and leaving a job, messages, counters. Memory is in
// memory_api.cc. It only checks arguments and turns codes into sentences.
#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "client/api/front_end.h"
#include "client/api/front_end_life.h"
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
#include "include/ferry/stream.h"
#include "shm/counters.h"

namespace {

using ferry::ErrorCode;
using ferry::Status;
using ferry::client::CheckAlone;
using ferry::client::Client;
using ferry::client::Completion;
using ferry::client::Fail;
using ferry::client::HasTerminal;
using ferry::client::JobLife;
using ferry::client::Message;
using ferry::client::PmiJob;

enum class Phase { kBefore, kRunning, kAfter };

std::atomic<Phase> phase{Phase::kBefore};
std::atomic<bool> forked{false};
// Owned; it ends with ferry_finalize alone. A process that ends without keeps it: handlers of
// atexit and static objects of the program may call ferry_finalize yet, and threads use it to the
// end.
Client* client = nullptr;
// Front ends that have joined and not left; and whether the first of them has made the connection.
int front_ends = 0;
bool is_front_ends_own = false;
// The job of a rank that another launcher started. It is never destroyed at exit: the server must
// see that a rank ended without ferry_finalize.
std::unique_ptr<PmiJob>& pmi_job = *new std::unique_ptr<PmiJob>();

bool IsRunning() {
  return phase.load(std::memory_order_acquire) == Phase::kRunning &&
         !forked.load(std::memory_order_relaxed);
}

Status CheckRunning() {
  if (IsRunning()) [[likely]] {
    return {};
  }
  if (forked.load(std::memory_order_relaxed)) {
    return {
        ErrorCode::kForked,
        "this process is a fork of one that had called ferry_init; start ranks with ferryrun, or "
        "call exec first"};
  }
  switch (phase.load(std::memory_order_acquire)) {
    case Phase::kRunning:
      return {};
    case Phase::kBefore:
      return {ErrorCode::kNotInitialized, "call ferry_init first"};
    case Phase::kAfter:
      return {ErrorCode::kNotInitialized, "ferry_finalize was called"};
  }
  return {};
}

int ReportFailure(ErrorCode error) {
  client->HearOfDeaths();  // a call that is refused because its peer is dead has not waited
  return Fail(client->Explain(error));
}

int Report(ErrorCode error) {
  return error == ErrorCode::kOk ? FERRY_SUCCESS : ReportFailure(error);
}

Status CheckBuffer(const void* buffer, size_t size_bytes) {
  if (buffer == nullptr && size_bytes != 0) {
    return {ErrorCode::kInvalidBuffer,
            "the buffer is null but " + std::to_string(size_bytes) + " bytes are to be moved"};
  }
  return {};
}

Status CheckRank(int rank, bool any_allowed) {
  if (rank >= 0 && static_cast<uint32_t>(rank) < client->size()) {
    return {};
  }
  if (any_allowed && rank == FERRY_ANY_SOURCE) {
    return {};
  }
  return {ErrorCode::kInvalidRank, "rank " + std::to_string(rank) + " is not between 0 and " +
                                       std::to_string(client->size() - 1) +
                                       (any_allowed ? ", nor FERRY_ANY_SOURCE" : "")};
}

Status CheckTag(int tag, bool any_allowed) {
  if ((tag >= 0 && tag <= FERRY_TAG_MAX) || (any_allowed && tag == FERRY_ANY_TAG)) {
    return {};
  }
  return {ErrorCode::kInvalidTag, "tag " + std::to_string(tag) + " is not between 0 and " +
                                      std::to_string(FERRY_TAG_MAX) +
                                      (any_allowed ? ", nor FERRY_ANY_TAG" : "")};
}

// Returns true if the arguments are those of nearly every call, so that no detailed check is
// needed.
inline bool IsPlainMessage(const void* buffer, int peer, int tag) {
  return IsRunning() && buffer != nullptr && static_cast<uint32_t>(peer) < client->size() &&
         static_cast<uint32_t>(tag) <= FERRY_TAG_MAX;
}

Status CheckMessage(const void* buffer, size_t size_bytes, int peer, int tag, bool receive) {
  FERRY_RETURN_IF_ERROR(CheckRunning());
  FERRY_RETURN_IF_ERROR(CheckBuffer(buffer, size_bytes));
  FERRY_RETURN_IF_ERROR(CheckRank(peer, receive));
  return CheckTag(tag, receive);
}

int CheckInDetail(const Message& message, bool receive) {
  const Status status =
      CheckMessage(message.buffer, message.size_bytes, message.peer, message.tag, receive);
  return status.ok() ? FERRY_SUCCESS : Fail(status);
}

// FERRY_SUCCESS, or what the call is to return.
inline int Check(const Message& message, bool receive) {
  return IsPlainMessage(message.buffer, message.peer, message.tag)
             ? FERRY_SUCCESS
             : CheckInDetail(message, receive);
}

Status CheckRequest(const ferry_request* request) {
  if (IsRunning() && request != nullptr && client->IsValid(*request) && !client->queues().any())
      [[likely]] {
    return {};
  }
  FERRY_RETURN_IF_ERROR(CheckRunning());
  if (request == nullptr) {
    return {ErrorCode::kInvalidArgument, "the address of the request is null"};
  }
  if (*request != FERRY_REQUEST_NULL && !client->IsValid(*request)) {
    return {ErrorCode::kInvalidRequest, "the request is not active: completed and freed before?"};
  }
  if (client->IsEnqueued(*request)) {
    return {ErrorCode::kInvalidRequest,
            "the request belongs to a queue: call ferry_queue_wait first"};
  }
  return {};
}

Message ToMessage(const void* buffer, size_t size_bytes, int peer, int tag) {
  return {const_cast<void*>(buffer), size_bytes, peer, tag, ferry::client::kUserContext};
}

void Fill(ferry_status* status, const Completion& completion) {
  if (status == nullptr) {
    return;
  }
  const bool cancelled = completion.error == ErrorCode::kCancelled;
  status->source = completion.source;
  status->tag = completion.tag;
  status->error = cancelled ? FERRY_SUCCESS : static_cast<int>(completion.error);
  status->cancelled = cancelled ? 1 : 0;
  status->size_bytes = completion.size_bytes;
}

// Ends a completed request as the caller sees it.
int Finish(ferry_request* request, ferry_status* status, const Completion& completion) {
  Fill(status, completion);
  if (!client->IsValid(*request) || *request == ferry::client::kCompletedSend) {
    *request = FERRY_REQUEST_NULL;
  }
  return completion.error == ErrorCode::kCancelled ? FERRY_SUCCESS : Report(completion.error);
}

// Waits for a request that was checked.
int WaitFor(ferry_request* request, ferry_status* status) {
  Completion completion;
  if (*request != FERRY_REQUEST_NULL) {
    client->Wait(*request, &completion);
  }
  return Finish(request, status, completion);
}

// Checks the arguments, then calls `start(message, request)`.
template <typename Start>
int Begin(const Message& message, bool receive, ferry_request* request, Start&& start) {
  if (const int error = Check(message, receive); error != FERRY_SUCCESS) [[unlikely]] {
    return error;
  }
  if (request == nullptr) {
    return Fail(ErrorCode::kInvalidArgument, "the address of the request is null");
  }
  return Report(start(message, request));
}

int MakePersistent(const Message& message, bool is_send, ferry_request* request) {
  return Begin(message, !is_send, request, [&](const Message& checked, ferry_request* made) {
    return client->MakePersistent(checked, is_send, made);
  });
}

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
    life.HearOfEnd(client->poison());
    for (uint32_t rank = 0; rank < client->size(); ++rank) {
      life.HearOfEnd(client->PeerState(rank));
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
    client->Abort(exit_code);
  }
  std::_Exit(exit_code);
}

int Initialize(int required, int* provided, Starter starter) {
  if (required < FERRY_THREAD_SINGLE || required > FERRY_THREAD_MULTIPLE) {
    return Fail(ErrorCode::kInvalidArgument, "the thread level is not one of FERRY_THREAD_*");
  }
  Phase before = Phase::kBefore;
  if (phase.load() != before) {
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
  JobLife& life = JobLife::Instance();
  life.SetPipe(options->abort_fd, static_cast<uint32_t>(options->rank));
  life.Enter();
  auto joined = Client::Join(*options, required == FERRY_THREAD_MULTIPLE, std::move(*backends));
  if (!joined.ok()) {
    life.HearOfEnd(joined.status().code());
    life.Leave();
    return Fail(joined.status());
  }
  client = joined->release();
  pmi_job = std::move(made);
  pthread_atfork(nullptr, nullptr, [] {
    forked.store(true, std::memory_order_relaxed);
    // Threads that its end would wait for do not exist in a child: it stays as it is.
    client = nullptr;
  });
  if (provided != nullptr) {
    *provided = required;
  }
  phase.store(Phase::kRunning, std::memory_order_release);
  return FERRY_SUCCESS;
}

}  // namespace

namespace ferry::client {

StatusOr<Client*> Running() {
  FERRY_RETURN_IF_ERROR(CheckRunning());
  return ::client;
}

}  // namespace ferry::client

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
  if (!forked.load(std::memory_order_relaxed)) {
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
    client->KeepThreads();
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
  const Status status = client->Leave();
  if (status.code() == ErrorCode::kInvalidRequest) {
    return Fail(status);
  }
  phase.store(Phase::kAfter, std::memory_order_release);
  const int result = status.ok() ? FERRY_SUCCESS : Fail(status);
  delete std::exchange(client, nullptr);
  JobLife::Instance().Leave();
  if (pmi_job != nullptr && status.ok()) {
    (void)pmi_job->Leave();  // an error of the server's comes too late to be reported
  }
  pmi_job.reset();
  return result;
}

int ferry_initialized(void) { return CheckRunning().ok() ? 1 : 0; }

void ferry_abort(int exit_code) { EndJob(exit_code, false); }

int ferry_rank(void) { return CheckRunning().ok() ? static_cast<int>(client->rank()) : -1; }

int ferry_size(void) { return CheckRunning().ok() ? static_cast<int>(client->size()) : -1; }

int ferry_node_of(int rank) {
  return CheckRunning().ok() && CheckRank(rank, false).ok()
             ? client->NodeOf(static_cast<uint32_t>(rank))
             : -1;
}

int ferry_isend(const void* buffer, size_t size_bytes, int destination, int tag,
                ferry_request* request) {
  return Begin(ToMessage(buffer, size_bytes, destination, tag), false, request,
               [](const Message& message, ferry_request* started) {
                 *started = FERRY_REQUEST_NULL;
                 return client->StartSend(message, started);
               });
}

int ferry_irecv(void* buffer, size_t size_bytes, int source, int tag, ferry_request* request) {
  return Begin(ToMessage(buffer, size_bytes, source, tag), true, request,
               [](const Message& message, ferry_request* started) {
                 *started = FERRY_REQUEST_NULL;
                 return client->StartReceive(message, started);
               });
}

int ferry_send(const void* buffer, size_t size_bytes, int destination, int tag) {
  const Message message = ToMessage(buffer, size_bytes, destination, tag);
  if (const int error = Check(message, false); error != FERRY_SUCCESS) [[unlikely]] {
    return error;
  }
  Completion completion;
  const ErrorCode error = client->Send(message, &completion);
  return Report(error != ErrorCode::kOk ? error : completion.error);
}

int ferry_recv(void* buffer, size_t size_bytes, int source, int tag, ferry_status* status) {
  const Message message = ToMessage(buffer, size_bytes, source, tag);
  if (const int error = Check(message, true); error != FERRY_SUCCESS) [[unlikely]] {
    return error;
  }
  Completion completion;
  const ErrorCode error = client->Receive(message, &completion);
  Fill(status, completion);
  return Report(error != ErrorCode::kOk ? error : completion.error);
}

int ferry_send_init(const void* buffer, size_t size_bytes, int destination, int tag,
                    ferry_request* request) {
  return MakePersistent(ToMessage(buffer, size_bytes, destination, tag), true, request);
}

int ferry_rsend_init(const void* buffer, size_t size_bytes, int destination, int tag,
                     ferry_request* request) {
  Message message = ToMessage(buffer, size_bytes, destination, tag);
  message.ready = true;
  return MakePersistent(message, true, request);
}

int ferry_recv_init(void* buffer, size_t size_bytes, int source, int tag, ferry_request* request) {
  return MakePersistent(ToMessage(buffer, size_bytes, source, tag), false, request);
}

int ferry_start(ferry_request request) {
  if (Status status = CheckRequest(&request); !status.ok()) {
    return Fail(status);
  }
  const ErrorCode error = client->Start(request);
  return error == ErrorCode::kInvalidRequest
             ? Fail(error, "only a persistent request that is not active can be started")
             : Report(error);
}

int ferry_request_free(ferry_request* request) {
  if (Status status = CheckRequest(request); !status.ok()) {
    return Fail(status);
  }
  if (*request == FERRY_REQUEST_NULL) {
    return FERRY_SUCCESS;
  }
  if (client->FreePersistent(*request) != ErrorCode::kOk) {
    return Fail(ErrorCode::kInvalidRequest,
                "only a persistent request that is not active can be freed; wait for it first");
  }
  *request = FERRY_REQUEST_NULL;
  return FERRY_SUCCESS;
}

int ferry_test(ferry_request* request, int* done, ferry_status* status) {
  if (Status check = CheckRequest(request); !check.ok()) {
    return Fail(check);
  }
  if (done == nullptr) {
    return Fail(ErrorCode::kInvalidArgument, "the address for the flag is null");
  }
  Completion completion;
  *done = *request == FERRY_REQUEST_NULL || client->Test(*request, &completion) ? 1 : 0;
  return *done != 0 ? Finish(request, status, completion) : FERRY_SUCCESS;
}

int ferry_wait(ferry_request* request, ferry_status* status) {
  if (Status check = CheckRequest(request); !check.ok()) {
    return Fail(check);
  }
  return WaitFor(request, status);
}

int ferry_waitall(size_t count, ferry_request* requests, ferry_status* statuses) {
  if (count != 0 && requests == nullptr) {
    return Fail(ErrorCode::kInvalidArgument, "the array of requests is null");
  }
  for (size_t i = 0; i < count; ++i) {
    if (Status check = CheckRequest(&requests[i]); !check.ok()) {
      return Fail(check);
    }
  }
  if (count > 1) {  // together: shared work is done once
    client->AwaitAll({requests, count});
  }
  int result = FERRY_SUCCESS;
  std::string sentence;
  for (size_t i = 0; i < count; ++i) {
    const int error = WaitFor(&requests[i], statuses == nullptr ? nullptr : &statuses[i]);
    if (error != FERRY_SUCCESS && result == FERRY_SUCCESS) {
      result = error;
      sentence = ferry_last_error();
    }
  }
  if (result != FERRY_SUCCESS) {
    ferry::client::RestoreLastError(std::move(sentence));
  }
  return result;
}

int ferry_waitany(size_t count, ferry_request* requests, int* index, ferry_status* status) {
  if (index == nullptr || (count != 0 && requests == nullptr)) {
    return Fail(ErrorCode::kInvalidArgument, "the array of requests or the index is null");
  }
  for (size_t i = 0; i < count; ++i) {
    if (Status check = CheckRequest(&requests[i]); !check.ok()) {
      return Fail(check);
    }
  }
  Completion completion;
  if (Status check = CheckRunning(); !check.ok()) {
    return Fail(check);
  }
  *index = client->WaitAny({requests, count}, &completion);
  return *index < 0 ? FERRY_SUCCESS : Finish(&requests[*index], status, completion);
}

int ferry_iprobe(int source, int tag, int* found, ferry_status* status) {
  if (Status check = CheckMessage(nullptr, 0, source, tag, true); !check.ok()) {
    return Fail(check);
  }
  if (found == nullptr) {
    return Fail(ErrorCode::kInvalidArgument, "the address for the flag is null");
  }
  Completion completion;
  const ErrorCode error = client->Probe(ToMessage(nullptr, 0, source, tag), false, &completion);
  *found = error == ErrorCode::kOk ? 1 : 0;
  if (*found != 0) {
    Fill(status, completion);
  }
  return error == ErrorCode::kWouldBlock ? FERRY_SUCCESS : Report(error);
}

int ferry_probe(int source, int tag, ferry_status* status) {
  if (Status check = CheckMessage(nullptr, 0, source, tag, true); !check.ok()) {
    return Fail(check);
  }
  Completion completion;
  const ErrorCode error = client->Probe(ToMessage(nullptr, 0, source, tag), true, &completion);
  Fill(status, completion);
  return Report(error);
}

int ferry_cancel(ferry_request request) {
  if (Status status = CheckRequest(&request); !status.ok()) {
    return Fail(status);
  }
  (void)client->Cancel(request);
  return FERRY_SUCCESS;
}

int ferry_barrier(void) {
  if (Status status = CheckRunning(); !status.ok()) {
    return Fail(status);
  }
  return Report(client->Barrier());
}

int ferry_counter_count(void) { return static_cast<int>(ferry::shm::kStatisticCount); }

const char* ferry_counter_name(int index) {
  return index < 0 || index >= ferry_counter_count()
             ? nullptr
             : ferry::shm::StatisticLabels()[static_cast<size_t>(index)].name;
}

uint64_t ferry_counter_value(int index) {
  return CheckRunning().ok() && index >= 0 && index < ferry_counter_count()
             ? client->Counter(static_cast<uint32_t>(index))
             : 0;
}

FERRY_API ferry::client::FrontEnd* ferry_front_end(uint32_t version) {
  return version == ferry::client::kFrontEndVersion && CheckRunning().ok() ? client : nullptr;
}

}  // extern "C"
