#include "tests/fuzz/rpc_caller.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace ferry::fuzz {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPatience(8000);
constexpr int kMaxReplies = 3;  // from a stream
constexpr size_t kMaxOpen = 16;

// The steps of a call, but for its beginning and its end.
struct Manner {
  int messages = 1;
  bool closes = true;    // says that no more come
  bool stays = false;    // is left open
  bool cancels = false;  // before there is an answer
};

Manner AnyManner(FuzzInput& input) {
  switch (input.Below(16)) {
    case 10:
      return {.messages = 0};
    case 11:
      return {.messages = 2};
    case 12:
      return {.stays = true};
    case 13:
      return {.closes = false, .stays = true};
    case 14:
      return {.messages = 0, .closes = false, .cancels = true};
    case 15:
      return {.cancels = true};
    default:
      return {};
  }
}

std::shared_ptr<grpc::Channel> ChannelTo(const std::string& target) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // connections of its own
  return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
}

// Metadata takes no others.
std::string Printable(std::string text) {
  std::erase_if(text, [](unsigned char c) { return c < 0x21 || c > 0x7e; });
  return text;
}

std::string TextOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string text;
  if (buffer.Dump(&slices).ok()) {
    for (const grpc::Slice& slice : slices) {
      text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
  }
  return text;
}

}  // namespace

struct RpcCaller::Open {
  grpc::ClientContext context;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream;
};

RpcCaller::RpcCaller(const std::string& socket, const std::string& port)
    : socket_(ChannelTo(socket)), port_(ChannelTo(port)) {}

RpcCaller::~RpcCaller() {
  DropOpenCalls();
  queue_.Shutdown();
  Step();
}

// Runs one step at a time. Returns whether it succeeded.
bool RpcCaller::Step() {
  void* tag = nullptr;
  bool succeeded = false;
  return queue_.Next(&tag, &succeeded) && succeeded;
}

void RpcCaller::AddMetadata(FuzzInput& input, const RpcWorld& world, grpc::ClientContext* context) {
  const uint32_t kind = input.Below(16);
  if (kind != 15) {
    context->AddMetadata("ferry-token", kind == 14 || world.tokens.empty()
                                            ? Printable(input.TakeText(input.Below(80)))
                                            : Pick(input, world.tokens));
  }
  if (kind == 13) {
    context->AddMetadata("ferry-token",
                         Pick(input, world.tokens.empty() ? world.jobs : world.tokens));
  }
  context->AddMetadata("ferry-daemon", input.Below(8) == 7 ? Pick(input, world.addresses)
                                                           : world.node.control_address());
  context->AddMetadata("ferry-daemon-token-bin", world.node_token);
}

void RpcCaller::Finish(Open& call, grpc::Status* status) {
  call.stream->Finish(status, nullptr);
  Step();
}

RpcOutcome RpcCaller::Call(FuzzInput& input, const RpcWorld& world) {
  const auto methods = RpcMethods();
  RpcOutcome outcome;
  outcome.method = &methods[input.Below(static_cast<uint32_t>(methods.size()))];
  if (outcome.method->ends_jobs && world.keeps_jobs && input.Below(16) != 15) {
    return outcome;
  }
  const bool belongs_to_port = outcome.method->service == RpcService::kPeer;
  const bool strays = input.Below(16) == 15;
  const Manner manner = AnyManner(input);
  auto call = std::make_unique<Open>();
  AddMetadata(input, world, &call->context);
  const std::string bytes = outcome.method->request(input, world);
  call->context.set_deadline(std::chrono::system_clock::now() + kPatience);
  grpc::GenericStub& stub = belongs_to_port != strays ? port_ : socket_;
  call->stream = stub.PrepareCall(&call->context, outcome.method->path, &queue_);
  call->stream->StartCall(nullptr);
  bool goes_on = Step();
  const grpc::Slice slice(bytes);
  for (int sent = 0; goes_on && sent < manner.messages; ++sent) {
    call->stream->Write(grpc::ByteBuffer(&slice, 1), nullptr);
    goes_on = Step();
  }
  if (goes_on && manner.closes) {
    call->stream->WritesDone(nullptr);
    goes_on = Step();
  }
  if (manner.stays && open_.size() < kMaxOpen) {
    open_.push_back(std::move(call));
    return outcome;
  }
  if (manner.cancels || manner.stays) {
    call->context.TryCancel();
  }
  grpc::ByteBuffer reply;
  for (int count = 0; goes_on && count < kMaxReplies; ++count) {
    call->stream->Read(&reply, nullptr);
    goes_on = Step();
    if (goes_on) {
      outcome.reply = TextOf(reply);
    }
  }
  if (goes_on) {
    call->context.TryCancel();  // a stream without end
  }
  Finish(*call, &outcome.status);
  outcome.over = true;
  return outcome;
}

void RpcCaller::DropOpenCalls() {
  for (const std::unique_ptr<Open>& call : open_) {
    call->context.TryCancel();
    grpc::Status ignored;
    Finish(*call, &ignored);
  }
  open_.clear();
}

}  // namespace ferry::fuzz
