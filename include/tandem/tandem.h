/* tandem.h - all of Tandem's public interface. Start at model.h. */
#ifndef TANDEM_H
#define TANDEM_H

#include <tandem/callbacks.h>
#include <tandem/cluster.h>
#include <tandem/confusion.h>
#include <tandem/context.h>
#include <tandem/data.h>
#include <tandem/generators.h>
#include <tandem/layers.h>
#include <tandem/model.h>
#include <tandem/rate_test.h>
#include <tandem/stages.h>
#include <tandem/status.h>
#include <tandem/tensor.h>
#include <tandem/trace.h>

#endif
