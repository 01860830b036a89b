import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Reads queues until it is killed: BROKER TOPIC,TOPIC GROUP REJECTED. Rejects each REJECTED-th offset
 * (0: none), accepts the others. A line for each record: TOPIC OFFSET DELIVERIES VALUE "early" or
 * "due", by its record time; "refused ..." for acknowledgements that were.
 */
public class QueueDrain {
    public static void main(String[] args) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("group.id", args[2]);
        settings.put("key.deserializer", StringDeserializer.class.getName());
        settings.put("value.deserializer", StringDeserializer.class.getName());
        settings.put("share.acknowledgement.mode", "explicit");
        settings.put("reconnect.backoff.max.ms", "200");
        int rejected = Integer.parseInt(args[3]);
        try (KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(settings)) {
            consumer.subscribe(List.of(args[1].split(",")));
            while (true) {
                work(consumer, rejected);
            }
        }
    }

    private static void work(KafkaShareConsumer<String, String> consumer, int rejected) {
        ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(500));
        long now = System.currentTimeMillis();
        StringBuilder lines = new StringBuilder();
        for (ConsumerRecord<String, String> each : records) {
            boolean no = rejected > 0 && each.offset() % rejected == 0;
            consumer.acknowledge(each, no ? AcknowledgeType.REJECT : AcknowledgeType.ACCEPT);
            lines.append(String.format("%s %d %d %s %s%n", each.topic(), each.offset(),
                each.deliveryCount().orElse((short) 0), each.value().substring(0, 8),
                now < each.timestamp() ? "early" : "due"));
        }
        System.out.print(lines);
        System.out.flush();
        try {
            consumer.commitSync().values().forEach(
                error -> error.ifPresent(e -> System.out.println("refused " + e)));
        } catch (KafkaException error) {
            System.out.println("refused " + error);
        }
    }
}
