/* A library as profilers put into a process for NVTX: it keeps the ranges of each thread as text, a line for the begin
 * of each, "tensorc: twice", behind two blanks for each range that it is in. With NVTX_RECORDER_REFUSES it says that it
 * cannot start. Numbers and structs are those of NVTX 3's headers. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void (*function)(void);

struct callbacks {
  size_t size;
  int (*module_table)(int module, function*** table, unsigned* size);
};
struct event {
  uint16_t version, size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type, reserved;
  uint64_t payload;
  int32_t message_type;
  const char* message;
};

enum { kCallbacks = 1, kCore2 = 5, kPush = 4, kPop = 5, kDomainCreate = 12, kCharacters = 1 };

char nvtx_recorded[1 << 16];
int nvtx_open, nvtx_faults; /* ranges that have begun and not ended; calls that no profiler would take */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local int depth;

static void* create_domain(const char* name) { return strdup(name); }

static int push(void* domain, const struct event* event) {
  char line[256];
  pthread_mutex_lock(&mutex);
  if (!domain || event->version != 3 || event->size != sizeof *event || event->message_type != kCharacters) {
    ++nvtx_faults;
  } else {
    snprintf(line, sizeof line, "%*s%s: %s\n", 2 * depth, "", (const char*)domain, event->message);
    strncat(nvtx_recorded, line, sizeof nvtx_recorded - strlen(nvtx_recorded) - 1);
  }
  ++nvtx_open;
  pthread_mutex_unlock(&mutex);
  return depth++;
}

static int pop(void* domain) {
  pthread_mutex_lock(&mutex);
  if (!domain || depth == 0) ++nvtx_faults;
  --nvtx_open;
  pthread_mutex_unlock(&mutex);
  return --depth;
}

int InitializeInjectionNvtx2(const void* (*export_table)(uint32_t)) {
  const struct callbacks* callbacks = export_table(kCallbacks);
  function** table = NULL;
  unsigned size = 0;
  if (getenv("NVTX_RECORDER_REFUSES")) return 0;
  if (!callbacks || callbacks->size < sizeof *callbacks || !callbacks->module_table(kCore2, &table, &size)) return 0;
  if (size <= kDomainCreate) return 0;
  *table[kPush] = (function)push;
  *table[kPop] = (function)pop;
  *table[kDomainCreate] = (function)create_domain;
  return 1;
}
