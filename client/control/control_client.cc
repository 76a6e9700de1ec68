// libferry_control.so: the only file of libferry that knows gRPC. See control_api.h.
#include <fcntl.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <tuple>

#include "client/control/control_api.h"
#include "common/counted.h"
#include "common/error_code.h"
#include "proto/control.grpc.pb.h"
#include "proto/error_details.h"

using ferry::ErrorCode;
namespace pb = ferry::control;

struct ferry_control {
  std::shared_ptr<grpc::Channel> channel;
  std::tuple<std::unique_ptr<pb::Client::Stub>, std::unique_ptr<pb::Launcher::Stub>> stubs;
  std::string token;
  std::string socket_path;
};

namespace {

using Clock = std::chrono::system_clock;

// Waits for something for a time in which this process could see it come. A process that was
// stopped, or did not get a core, for so long notices the end of the time late, and what has come
// meanwhile may be there: then the time begins anew.
class Patience {
 public:
  explicit Patience(uint32_t timeout_ms) : timeout_(timeout_ms), end_(Clock::now() + timeout_) {}
  Clock::time_point end() const { return end_; }
  // Call it when nothing came until end().
  bool IsOver() {
    const Clock::time_point now = Clock::now();
    if (now - end_ < std::max(timeout_ / 8, kMoment)) {
      return true;
    }
    end_ = now + timeout_;
    return false;
  }

 private:
  static constexpr std::chrono::milliseconds kMoment{20};
  const std::chrono::milliseconds timeout_;
  Clock::time_point end_;
};

void Fill(const std::string& message, ferry_control_text text) {
  if (text.data != nullptr && text.size_bytes > 0) {
    const size_t size = std::min(message.size(), text.size_bytes - 1);
    std::memcpy(text.data, message.data(), size);
    text.data[size] = '\0';
  }
}

int Fail(ErrorCode code, const std::string& message, ferry_control_text text) {
  Fill(message, text);
  return static_cast<int>(code);
}

// The daemon's own code where it sent one; else what gRPC found out about the connection.
int Finish(const ferry_control& control, const grpc::Status& status, ferry_control_text text) {
  if (status.ok()) {
    return 0;
  }
  if (const int code = pb::DecodeErrorDetails(status.error_details()); code != 0) {
    return Fail(static_cast<ErrorCode>(code), status.error_message(), text);
  }
  const std::string about = "ferryd at " + control.socket_path + ": " + status.error_message();
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
      return Fail(ErrorCode::kDaemonDied, about, text);
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return Fail(ErrorCode::kTimeout, about, text);
    case grpc::StatusCode::UNIMPLEMENTED:
      return Fail(ErrorCode::kVersionMismatch, about, text);
    default:
      return Fail(ErrorCode::kInternal, about, text);
  }
}

// One unary call of a service, with the token. Returns what the function is to.
template <typename Stub, typename Request, typename Reply>
int Call(ferry_control* control, uint32_t timeout_ms,
         std::unique_ptr<grpc::ClientAsyncResponseReader<Reply>> (Stub::*method)(
             grpc::ClientContext*, const Request&, grpc::CompletionQueue*),
         const Request& request, Reply* reply, ferry_control_text text) {
  grpc::ClientContext context;
  context.AddMetadata("ferry-token", control->token);
  Stub& stub = *std::get<std::unique_ptr<Stub>>(control->stubs);
  grpc::CompletionQueue queue;
  grpc::Status status;
  const auto answer = (stub.*method)(&context, request, &queue);
  answer->Finish(reply, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  Patience patience(timeout_ms);
  while (queue.AsyncNext(&tag, &ok, patience.end()) == grpc::CompletionQueue::TIMEOUT) {
    if (patience.IsOver()) {
      context.TryCancel();
      queue.Next(&tag, &ok);
      if (!status.ok()) {  // else the answer has come just now
        return Fail(ErrorCode::kTimeout,
                    "ferryd at " + control->socket_path + " has not answered for " +
                        std::to_string(timeout_ms) + " ms: is it stopped?",
                    text);
      }
      break;
    }
  }
  return Finish(*control, status, text);
}

// After so long the daemon answers a long poll, whatever has come; it has as long again, and more,
// before it counts as one that does not answer.
uint32_t PollMs(uint32_t timeout_ms) { return timeout_ms / 2; }
uint32_t PollTimeoutMs(uint32_t timeout_ms) {
  return static_cast<uint32_t>(
      std::min<uint64_t>(uint64_t{timeout_ms} + PollMs(timeout_ms), INT32_MAX));
}

ferry_control_peer PeerFrom(const pb::PeerInfo& info) {
  return {info.rank(), info.node(), info.local_index(), info.pid(),
          info.private_memory_reachable() ? 1U : 0U};
}

// gRPC would connect by itself, and again whenever it likes: to whatever is there by then.
int Connect(int socket, const char* socket_path, const char* token_hex, ferry_control** control,
            ferry_control_text text) {
  const int flags = fcntl(socket, F_GETFL);
  if (flags < 0 || fcntl(socket, F_SETFL, flags | O_NONBLOCK) != 0) {
    return Fail(ErrorCode::kNoDaemon, std::string("no connection to ") + socket_path, text);
  }
  auto made = std::make_unique<ferry_control>();
  made->socket_path = socket_path;
  made->token = token_hex;
  made->channel = grpc::CreateInsecureChannelFromFd("localhost", socket);
  made->stubs = {pb::Client::NewStub(made->channel), pb::Launcher::NewStub(made->channel)};
  *control = made.release();
  return 0;
}

int Join(ferry_control* control, uint32_t timeout_ms, uint32_t wait_ms, uint32_t size,
         ferry_control_peer* peers, uint32_t* node, uint32_t* node_count,
         void (*waits)(void* argument, const char* missing), void* argument,
         ferry_control_text text) {
  pb::JoinJobRequest request;
  request.set_wait_ms(wait_ms == 0 ? PollMs(timeout_ms) : std::min(wait_ms, PollMs(timeout_ms)));
  pb::JoinJobReply reply;
  for (;;) {
    if (const int error = Call(control, PollTimeoutMs(timeout_ms), &pb::Client::Stub::AsyncJoinJob,
                               request, &reply, text);
        error != 0) {
      return error;
    }
    if (!reply.waiting()) {
      break;
    }
    waits(argument, reply.missing().c_str());
  }
  if (reply.peers_size() != static_cast<int>(size)) {
    return Fail(ErrorCode::kInvalidArgument,
                "the job has " + ferry::Counted(reply.peers_size(), "rank") + ", not " +
                    std::to_string(size),
                text);
  }
  for (uint32_t i = 0; i < size; ++i) {
    peers[i] = PeerFrom(reply.peers(static_cast<int>(i)));
  }
  *node = reply.node();
  *node_count = reply.node_count();
  return 0;
}

int RegisterRegion(ferry_control* control, uint32_t timeout_ms, const ferry_control_region* region,
                   ferry_control_text text) {
  pb::RegisterRegionRequest request;
  request.set_region(region->region);
  request.set_size_bytes(region->size_bytes);
  request.set_kind(static_cast<pb::RegionKind>(region->kind));
  request.set_device(region->device);
  request.set_allocation_id(region->allocation_id);
  pb::RegisterRegionReply reply;
  return Call(control, timeout_ms, &pb::Client::Stub::AsyncRegisterRegion, request, &reply, text);
}

int DeregisterRegion(ferry_control* control, uint32_t timeout_ms, uint32_t region,
                     ferry_control_text text) {
  pb::DeregisterRegionRequest request;
  request.set_region(region);
  pb::DeregisterRegionReply reply;
  return Call(control, timeout_ms, &pb::Client::Stub::AsyncDeregisterRegion, request, &reply, text);
}

int Resolve(ferry_control* control, uint32_t timeout_ms, const uint32_t* ranks, uint32_t count,
            ferry_control_peer* peers, ferry_control_text text) {
  if (count == 0) {
    return 0;  // on the wire, no ranks would mean all
  }
  pb::ResolvePeersRequest request;
  request.mutable_ranks()->Add(ranks, ranks + count);
  pb::ResolvePeersReply reply;
  if (const int error =
          Call(control, timeout_ms, &pb::Client::Stub::AsyncResolvePeers, request, &reply, text);
      error != 0) {
    return error;
  }
  if (reply.peers_size() != static_cast<int>(count)) {
    return Fail(ErrorCode::kInternal, "ferryd resolved another number of ranks than asked for",
                text);
  }
  for (uint32_t i = 0; i < count; ++i) {
    peers[i] = PeerFrom(reply.peers(static_cast<int>(i)));
  }
  return 0;
}

void FillKey(const ferry_control_match_key& key, pb::MatchKey* filled) {
  filled->set_context(key.context);
  filled->set_source(key.source);
  filled->set_destination(key.destination);
  filled->set_tag(key.tag);
  filled->set_ordinal(key.ordinal);
}

void FillPlace(const ferry_control_place& place, pb::MemoryPlace* filled) {
  filled->set_region(place.region);
  filled->set_offset(place.offset);
}

int OfferMatches(ferry_control* control, uint32_t timeout_ms, int sends,
                 const ferry_control_offer* offers, size_t count, ferry_control_text text) {
  pb::OfferMatchesRequest request;
  request.set_sends(sends != 0);
  for (size_t i = 0; i < count; ++i) {
    pb::MatchOffer* offer = request.add_offers();
    FillKey(offers[i].key, offer->mutable_key());
    offer->set_size_bytes(offers[i].size_bytes);
    offer->set_mode(offers[i].mode);
    offer->set_cell_count(offers[i].cell_count);
    FillPlace(offers[i].end, offer->mutable_end());
    FillPlace(offers[i].window, offer->mutable_window());
    FillPlace(offers[i].cells, offer->mutable_cells());
  }
  pb::OfferMatchesReply reply;
  return Call(control, timeout_ms, &pb::Client::Stub::AsyncOfferMatches, request, &reply, text);
}

int WithdrawMatch(ferry_control* control, uint32_t timeout_ms, int send,
                  const ferry_control_match_key* key, uint64_t rounds, ferry_control_text text) {
  pb::WithdrawMatchRequest request;
  FillKey(*key, request.mutable_key());
  request.set_send(send != 0);
  request.set_rounds(rounds);
  pb::WithdrawMatchReply reply;
  return Call(control, timeout_ms, &pb::Client::Stub::AsyncWithdrawMatch, request, &reply, text);
}

int Detach(ferry_control* control, uint32_t timeout_ms, ferry_control_text text) {
  pb::DetachRequest request;
  request.set_wait_ms(PollMs(timeout_ms));
  pb::DetachReply reply;
  do {
    if (const int error = Call(control, PollTimeoutMs(timeout_ms), &pb::Client::Stub::AsyncDetach,
                               request, &reply, text);
        error != 0) {
      return error;
    }
    request.set_again(true);
  } while (reply.waiting());
  return 0;
}

int Why(ferry_control* control, uint32_t timeout_ms, ferry_control_text verdict,
        ferry_control_text text) {
  pb::WhyMeReply reply;
  const int error =
      Call(control, timeout_ms, &pb::Client::Stub::AsyncWhyMe, pb::WhyMeRequest(), &reply, text);
  Fill(reply.verdict(), verdict);
  return error;
}

int Abort(ferry_control* control, uint32_t timeout_ms, int32_t exit_code, const char* reason,
          ferry_control_text text) {
  pb::AbortJobRequest request;
  request.set_exit_code(exit_code);
  request.set_reason(reason == nullptr ? "" : reason);
  pb::AbortJobReply reply;
  return Call(control, timeout_ms, &pb::Client::Stub::AsyncAbortJob, request, &reply, text);
}

int ControlAddress(ferry_control* control, uint32_t timeout_ms, ferry_control_text address,
                   ferry_control_text text) {
  pb::StatusReply reply;
  if (const int error = Call(control, timeout_ms, &pb::Launcher::Stub::AsyncStatus,
                             pb::StatusRequest(), &reply, text);
      error != 0) {
    return error;
  }
  if (reply.node().control_address().size() >= address.size_bytes) {
    return Fail(ErrorCode::kInternal, "no room for the daemon's control address", text);
  }
  reply.node().control_address().copy(address.data, address.size_bytes);
  address.data[reply.node().control_address().size()] = '\0';
  return 0;
}

int CreateJob(ferry_control* control, uint32_t timeout_ms, const ferry_control_job* job,
              ferry_control_text text) {
  pb::CreateJobRequest request;
  request.set_job_id(job->job_id);
  request.set_secret(job->secret);
  request.set_size(job->size);
  request.set_node(job->node);
  request.mutable_node_of_rank()->Add(job->node_of_rank, job->node_of_rank + job->size);
  for (uint32_t node = 0; node < job->node_count; ++node) {
    request.add_node_addresses(job->node_addresses[node]);
  }
  pb::CreateJobReply reply;
  return Call(control, timeout_ms, &pb::Launcher::Stub::AsyncCreateJob, request, &reply, text);
}

void Close(ferry_control* control) { delete control; }

constexpr ferry_control_api kApi = {
    .version = FERRY_CONTROL_API_VERSION,
    .connect = Connect,
    .join = Join,
    .register_region = RegisterRegion,
    .deregister_region = DeregisterRegion,
    .resolve = Resolve,
    .offer_matches = OfferMatches,
    .withdraw_match = WithdrawMatch,
    .detach = Detach,
    .why = Why,
    .abort = Abort,
    .control_address = ControlAddress,
    .create_job = CreateJob,
    .close = Close,
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const ferry_control_api* ferry_control_entry() {
  return &kApi;
}
