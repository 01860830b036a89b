// A subscriber with kafkajs as a process of its own, to be killed; or a producer.
// usage: node subscriber.js produce|consume BOOTSTRAP TOPIC COUNT|GROUP
// Says "written COUNT", or "read PARTITION OFFSET" for each record, which is then committed.
const { Kafka, Partitioners, logLevel } = require('kafkajs')

const [verb, bootstrap, topic, argument] = process.argv.slice(2)
const kafka = new Kafka({
  brokers: [bootstrap],
  logLevel: logLevel.NOTHING,
  retry: { initialRetryTime: 200, maxRetryTime: 1000, retries: 1000 },
})

async function produce() {
  const producer = kafka.producer({
    createPartitioner: Partitioners.DefaultPartitioner,
    idempotent: true,
    maxInFlightRequests: 1,
  })
  await producer.connect()
  const messages = [...Array(Number(argument)).keys()].map(number => ({ value: String(number) }))
  await producer.send({ topic, messages, acks: -1 })
  await producer.disconnect()
  console.log('written', argument)
}

async function consume() {
  // No heartbeat goes out while a fetch waits: it has to wait for less than the session's time-out.
  const consumer = kafka.consumer({
    groupId: argument, sessionTimeout: 3000, heartbeatInterval: 300, rebalanceTimeout: 3000,
    maxWaitTimeInMs: 500,
  })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  await consumer.run({
    autoCommit: false,
    eachMessage: async ({ partition, message }) => {
      console.log('read', partition, message.offset)
      const offset = String(BigInt(message.offset) + 1n)
      await consumer.commitOffsets([{ topic, partition, offset }])
    },
  })
}

(verb === 'produce' ? produce() : consume()).catch(error => {
  console.error(error)
  process.exit(1)
})
