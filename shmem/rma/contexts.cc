#include "shmem/rma/contexts.h"

#include <algorithm>
#include <deque>
#include <mutex>

#include "shmem/base/fail.h"
#include "shmem/base/job.h"
#include "shmem/rma/remote.h"

namespace ferry::shmem {
namespace {

constexpr long kKnownOptions = kSerializedContext | kPrivateContext | kNostore;

struct Contexts {
  std::mutex mutex;
  std::deque<Context> all;  // but the default one; a handle is the address of one
  std::vector<Context*> free;
};
Contexts& contexts = *new Contexts();

void Check(const char* call, const Context* context) {
  CheckRunning(call);
  if (context->team->size == 0) {
    Fail(call, "the context was destroyed, or its team was");
  }
}

}  // namespace

void DestroyContextsOf(const char* call, Team* team) {
  std::lock_guard lock(contexts.mutex);
  for (Context* const context : team->contexts) {
    EndRemote(call, context);
    context->team = &no_team;
    contexts.free.push_back(context);
  }
  team->contexts.clear();
}

void CompleteContexts(const char* call) {
  std::lock_guard lock(contexts.mutex);
  EndRemote(call, DefaultContext());
  for (Context& context : contexts.all) {
    EndRemote(call, &context);
  }
}

size_t CountOpenContexts() {
  std::lock_guard lock(contexts.mutex);
  return static_cast<size_t>(
      std::count_if(contexts.all.begin(), contexts.all.end(),
                    [](const Context& context) { return context.team != &no_team; }));
}

void ForgetContexts() {
  std::lock_guard lock(contexts.mutex);
  contexts.free.clear();
  for (Context& context : contexts.all) {
    context.team = &no_team;
    contexts.free.push_back(&context);
  }
}

int ContextCreate(const char* call, Team* team, long options, Context** made) {
  CheckRunning(call);
  *made = nullptr;
  if (team == nullptr || (options & ~kKnownOptions) != 0) {
    return -1;
  }
  (void)CheckTeam(call, team);
  std::lock_guard lock(contexts.mutex);
  Context* context = nullptr;
  if (contexts.free.empty()) {
    context = &contexts.all.emplace_back();
  } else {
    context = contexts.free.back();
    contexts.free.pop_back();
  }
  context->team = team;
  context->options = options;
  if ((options & kPrivateContext) != 0) {
    team->private_contexts++;
  } else {
    team->contexts.push_back(context);
  }
  *made = context;
  return 0;
}

void ContextDestroy(const char* call, Context* context) {
  CheckRunning(call);
  if (context == nullptr) {
    return;
  }
  if (context == DefaultContext()) {
    Fail(call, "SHMEM_CTX_DEFAULT cannot be destroyed");
  }
  std::lock_guard lock(contexts.mutex);
  if (context->team == &no_team) {
    Fail(call, "the context was destroyed before, or its team was");
  }
  EndRemote(call, context);
  auto* const team = const_cast<Team*>(context->team);
  if ((context->options & kPrivateContext) != 0) {
    team->private_contexts--;
  } else {
    std::erase(team->contexts, context);
  }
  context->team = &no_team;
  contexts.free.push_back(context);
}

int ContextGetTeam(const char* call, Context* context, Team** team) {
  CheckRunning(call);
  *team = nullptr;
  if (context == nullptr) {
    return -1;
  }
  Check(call, context);
  *team = const_cast<Team*>(context->team);
  return 0;
}

// Hints about how a context is used: there is nothing that they could make cheaper.
void ContextSessionStart(const char* call, Context* context, long options) {
  CheckRunning(call);
  if (context != nullptr) {
    Check(call, context);
  }
  (void)options;
}

void ContextSessionStop(const char* call, Context* context) {
  ContextSessionStart(call, context, 0);
}

}  // namespace ferry::shmem
