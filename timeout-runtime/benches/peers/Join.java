import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.Arrays;

/** Starts a virtual thread per call, and joins it for at most five seconds. */
public class Join {
    private static final int SAMPLES = 1 << 20;

    private static long result;

    public static void main(String[] arguments) throws IOException, InterruptedException {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            System.out.println(median(Long.parseLong(line.trim()) * 1_000_000));
        }
    }

    private static long median(long nanoseconds) throws InterruptedException {
        long[] samples = new long[SAMPLES];
        int count = 0;
        long begun = System.nanoTime();
        long before = begun;
        while (before - begun < nanoseconds && count < SAMPLES) {
            call(count);
            long after = System.nanoTime();
            samples[count++] = after - before;
            before = after;
        }
        Arrays.sort(samples, 0, count);
        return samples[count / 2];
    }

    private static void call(long x) throws InterruptedException {
        Thread operation = Thread.startVirtualThread(() -> result = x + 1);
        operation.join(5_000);
        if (operation.isAlive()) {
            throw new IllegalStateException("a call did not return in time");
        }
    }
}
