import java.io.File;
import java.util.Map;
import java.util.TreeMap;
import org.HdrHistogram.EncodableHistogram;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.HistogramIterationValue;
import org.HdrHistogram.HistogramLogReader;

/**
 * Reads an interval log with Java's HdrHistogram and prints, for each tag, what its intervals add
 * up to: `TAG count N first MS last MS`, then `TAG RANK LOW HIGH` for each rank asked, the bounds of
 * the bucket that holds it. Usage: ReadLog LOG TAG:RANK...
 */
public final class ReadLog {
    private static final class Sum {
        final Histogram histogram = new Histogram(1, 120_000_000_000L, 3);
        long firstMs = Long.MAX_VALUE;
        long lastMs = Long.MIN_VALUE;
    }

    public static void main(String[] args) throws Exception {
        Map<String, Sum> sums = new TreeMap<>();
        HistogramLogReader reader = new HistogramLogReader(new File(args[0]));
        while (reader.hasNext()) {
            EncodableHistogram next = reader.nextIntervalHistogram();
            if (next == null) break;
            Sum sum = sums.computeIfAbsent(next.getTag(), tag -> new Sum());
            sum.histogram.add((Histogram) next);
            sum.firstMs = Math.min(sum.firstMs, next.getStartTimeStamp());
            sum.lastMs = Math.max(sum.lastMs, next.getEndTimeStamp());
        }
        sums.forEach((tag, sum) -> System.out.printf("%s count %d first %d last %d%n", tag,
                sum.histogram.getTotalCount(), sum.firstMs, sum.lastMs));
        for (int i = 1; i < args.length; i++) {
            String[] asked = args[i].split(":");
            Histogram histogram = sums.get(asked[0]).histogram;
            long rank = Long.parseLong(asked[1]);
            for (HistogramIterationValue value : histogram.recordedValues()) {
                if (value.getTotalCountToThisValue() < rank) continue;
                long at = value.getValueIteratedTo();
                System.out.printf("%s %d %d %d%n", asked[0], rank,
                        histogram.lowestEquivalentValue(at), histogram.highestEquivalentValue(at));
                break;
            }
        }
    }
}
