/* confusion.h - which class was taken for which: what td_evaluate counts, and the scores that follow from it.
 *
 *     td_confusion *confusion;
 *     td_evaluate(model, data, &logs, .confusion = &confusion);
 *     td_class_scores cat = td_confusion_scores(confusion, 3);
 *     td_confusion_free(confusion); */
#ifndef TANDEM_CONFUSION_H
#define TANDEM_CONFUSION_H

#include <tandem/model.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 0 where a score would divide by 0, but `iou` of a class that is neither there nor predicted: not a number, and no
 * part of the mean. */
typedef struct td_class_scores {
    double precision; /* of those taken for the class, how many are of it */
    double recall;    /* of those of the class, how many were taken for it */
    double f1;        /* 2 precision recall / (precision + recall) */
    double iou;       /* intersection over union: right / (of the class, or taken for it) */
    int64_t support;  /* of the class */
} td_class_scores;

TD_API int td_confusion_classes(const td_confusion *confusion);
/* Has the output a class per position (pixel, step) rather than one per sample? */
TD_API int td_confusion_positions(const td_confusion *confusion);
/* How many of class `actual` were taken for class `predicted`. */
TD_API int64_t td_confusion_count(const td_confusion *confusion, int actual, int predicted);
/* All that were counted; how many were not, being of the class to ignore. */
TD_API int64_t td_confusion_total(const td_confusion *confusion);
TD_API int64_t td_confusion_ignored(const td_confusion *confusion);

TD_API td_class_scores td_confusion_scores(const td_confusion *confusion, int index);
/* Means over the classes that are there or were predicted: plain ones (`iou` is then Keras's MeanIoU), or weighted by
 * support. */
TD_API td_class_scores td_confusion_mean(const td_confusion *confusion);
TD_API td_class_scores td_confusion_weighted_mean(const td_confusion *confusion);
/* The share that was taken for what it is. */
TD_API double td_confusion_accuracy(const td_confusion *confusion);

/* The matrix as CSV: a line per actual class, a column per predicted one, numbered from 0. */
TD_API td_status td_confusion_save(td_context *context, const char *path, const td_confusion *confusion);
TD_API void td_confusion_free(td_confusion *confusion); /* NULL is accepted */

#ifdef __cplusplus
}
#endif
#endif
